#include "src/machine/system_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>

#include "src/base/printable.h"
#include "src/base/small_file.h"

namespace sluice {
namespace {

constexpr size_t kMostBytes = 4 << 20;  // /proc/stat and /proc/cpuinfo of a large machine
constexpr int kMostNumber = 1 << 16;

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

std::optional<int> WholeNumber(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < 0 || value > kMostNumber) return std::nullopt;
  return value;
}

Status Unexpected(const std::string& path, const char* expected, const std::string& found) {
  return Status(StatusCode::kCorrupt, path + ": expected " + expected + ", found '" +
                                          Printable(found.substr(0, 40)) + "'");
}

Result<double> NumberOf(const std::string& path, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return Unexpected(path, "a number", text);
  return value;
}

}  // namespace

std::vector<int> ParseList(std::string_view text) {
  std::vector<int> numbers;
  std::istringstream in{std::string(Trimmed(text))};
  for (std::string part; std::getline(in, part, ',');) {
    const size_t dash = part.find('-');
    const auto first = WholeNumber(std::string_view(part).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : WholeNumber(std::string_view(part).substr(dash + 1));
    if (!first || !last) return {};
    for (int n = *first; n <= *last; ++n) numbers.push_back(n);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string ListText(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (last > i) text += (last > i + 1 ? "-" : ",") + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

Result<std::string> SystemFiles::Text(const std::string& path) const {
  Result<std::string> text = ReadSmallFile(root_ + path, kMostBytes);
  if (!text.ok()) return text.status();
  text->erase(text->find_last_not_of(" \t\n") + 1);
  return text;
}

Result<double> SystemFiles::Number(const std::string& path) const {
  ASSIGN_OR_RETURN(const std::string text, Text(path));
  return NumberOf(path, text);
}

Result<std::string> SystemFiles::Chosen(const std::string& path) const {
  ASSIGN_OR_RETURN(const std::string text, Text(path));
  const size_t begin = text.find('['), end = text.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return Unexpected(path, "a word in brackets", text);
  }
  return text.substr(begin + 1, end - begin - 1);
}

Result<std::vector<int>> SystemFiles::List(const std::string& path) const {
  ASSIGN_OR_RETURN(const std::string text, Text(path));
  std::vector<int> numbers = ParseList(text);
  if (numbers.empty()) return Unexpected(path, "a list such as 0-3,8", text);
  return numbers;
}

Result<std::string> SystemFiles::Field(const std::string& path, std::string_view key) const {
  ASSIGN_OR_RETURN(const std::string text, Text(path));
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(key)) return std::string(Trimmed(line.substr(key.size())));
  }
  return Status(StatusCode::kNotFound, path + ": has no line " + std::string(key));
}

Result<double> SystemFiles::FieldNumber(const std::string& path, std::string_view key) const {
  ASSIGN_OR_RETURN(const std::string text, Field(path, key));
  return NumberOf(path, text);
}

bool SystemFiles::Exists(const std::string& path) const {
  std::error_code ignored;
  return std::filesystem::exists(root_ + path, ignored);
}

std::vector<std::string> SystemFiles::Numbered(const std::string& folder,
                                               std::string_view prefix) const {
  std::vector<std::pair<int, std::string>> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(root_ + folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    if (const auto n = WholeNumber(std::string_view(name).substr(prefix.size()))) {
      found.emplace_back(*n, name);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [n, name] : found) names.push_back(std::move(name));
  return names;
}

}  // namespace sluice
