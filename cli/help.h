// What --help prints: every command's flags in the width of the terminal, one short word for each
// value. Made once by main; CLI11 asks it.
#ifndef SLUICE_CLI_HELP_H_
#define SLUICE_CLI_HELP_H_

#include <CLI/CLI.hpp>
#include <string>

namespace sluice {

// Lines of a footer or description are paragraphs; those that begin with a blank stay as they are.
class HelpFormatter : public CLI::FormatterBase {
 public:
  // columns: of a line, at most.
  explicit HelpFormatter(size_t columns) : columns_(columns) {}
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;

 private:
  const size_t columns_;
};

}  // namespace sluice
#endif  // SLUICE_CLI_HELP_H_
