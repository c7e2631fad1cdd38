// The vocabularies and expected ids that live next to the repository, for the
// tests of this folder. Absent on most machines: tests then skip.
#ifndef SLUICE_TESTS_TEXT_SHARED_ORACLES_H_
#define SLUICE_TESTS_TEXT_SHARED_ORACLES_H_

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace sluice {

inline std::filesystem::path SharedOracles(const char* kind) {
  const char* shared = std::getenv("SLUICE_SHARED");
  return std::filesystem::path(shared ? shared : SLUICE_SOURCE_DIR "/../shared") / "oracles" / kind;
}

// Names (without .json) of the oracle files of a kind; {"absent"} if there are none.
inline std::vector<std::string> OracleNames(const char* kind) {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(SharedOracles(kind), absent)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) names.push_back("absent");
  return names;
}

inline boost::json::object ReadOracle(const char* kind, const std::string& name) {
  std::ifstream in(SharedOracles(kind) / (name + ".json"), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return boost::json::parse(text).as_object();
}

// A test name of letters, digits and underlines.
inline std::string TestName(std::string name) {
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

}  // namespace sluice
#endif  // SLUICE_TESTS_TEXT_SHARED_ORACLES_H_
