// One line of input at a time: with editing and history on a terminal
// (libedit), plain from a pipe. One per process.
#ifndef SLUICE_CLI_LINE_READER_H_
#define SLUICE_CLI_LINE_READER_H_

#include <histedit.h>

#include <optional>
#include <string>

namespace sluice {

class LineReader {
 public:
  explicit LineReader(std::string prompt);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next line without its newline; nothing at the end of the input.
  std::optional<std::string> Next();

 private:
  const std::string prompt_;
  EditLine* editor_ = nullptr;  // null on a pipe
  History* history_ = nullptr;
};

}  // namespace sluice
#endif  // SLUICE_CLI_LINE_READER_H_
