#include "cli/arguments.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "src/base/printable.h"

namespace sluice {
namespace {

// Flags whose value may be any text, also one that begins with a dash.
bool TakesText(std::string_view flag) {
  for (std::string_view f :
       {"-p", "--prompt", "-r", "--stop", "--reverse-prompt", "--system", "-sys", "--vs"}) {
    if (flag == f) return true;
  }
  return false;
}

// -fa may have a value and may have none, which CLI11 could not tell from a model's name.
bool IsSwitch(std::string_view word) {
  for (std::string_view w : {"on", "off", "auto", "0", "1"}) {
    if (word == w) return true;
  }
  return false;
}

}  // namespace

Result<std::vector<std::string>> CommandArguments(const std::vector<std::string>& given) {
  std::vector<std::string> args;
  for (size_t i = 0; i < given.size(); ++i) {
    std::string a = given[i];
    const auto letter = [&](size_t at) {
      return at < a.size() && std::isalpha(static_cast<unsigned char>(a[at]));
    };
    const bool word = a[0] == '-' && letter(1) && letter(2);
    if (word && !(i > 0 && TakesText(given[i - 1]))) {
      const std::string_view name = std::string_view(a).substr(0, a.find('='));
      bool known = false;
      for (std::string_view k :
           {"-ngl", "-tb", "-ctk", "-ctv", "-sys", "-pg", "-np", "-fa", "-mmp", "-ub", "-no-cnv"})
        known |= name == k;
      if (!known) {
        return Status(StatusCode::kInvalidArgument,
                      "unknown flag " + Printable(a) + "; sluice COMMAND --help lists the flags" +
                          (name == "-hf" ? "; to fetch a model: sluice pull hf:OWNER/REPO" : ""));
      }
      a.insert(0, 1, '-');
    }
    const bool text = i > 0 && TakesText(given[i - 1]);
    if (!text && (a == "--fa" || a == "--flash-attn") && i + 1 < given.size() &&
        IsSwitch(given[i + 1])) {
      a += "=" + given[++i];
    }
    args.push_back(std::move(a));
  }
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
  return args;
}

}  // namespace sluice
