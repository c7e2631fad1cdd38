// Bodies of requests, read with care: JSON that people and machines sent, field
// by field, each with its range. Used by every dialect; stateless, any thread.
#ifndef SLUICE_SRC_SERVER_FIELDS_H_
#define SLUICE_SRC_SERVER_FIELDS_H_

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/text/json_text.h"  // what answers are written with

namespace sluice {

// An object: UTF-8 checked, no key twice, at most 64 levels, no number beyond a double.
Result<boost::json::object> ParseBody(std::string_view body);
// 0.8 of 0.8f, where a plain conversion gives 0.800000011920929.
double AsWritten(float value);

// Reads fields of an object. null counts as absent. The first that is wrong is kept as status(),
// with the field's name as param(), and answers with its default.
class Fields {
 public:
  explicit Fields(const boost::json::object& object) : object_(object) {}

  const boost::json::value* Find(std::string_view key) const;  // null: absent or null
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  // Integers also as 5.0; numbers also as integers; nothing else converts.
  int64_t Int(std::string_view key, int64_t fallback, int64_t least, int64_t most);
  double Number(std::string_view key, double fallback, double least, double most);
  bool Bool(std::string_view key, bool fallback);
  std::string String(std::string_view key, std::string_view fallback = "");
  // One string or an array of them, at most `most`.
  std::vector<std::string> Strings(std::string_view key, size_t most);
  const boost::json::array* Array(std::string_view key);    // null: absent
  const boost::json::object* Object(std::string_view key);  // null: absent

  void Fail(std::string_view key, std::string message);  // "max_tokens: " is put before it
  const Status& status() const { return status_; }
  const std::string& param() const { return param_; }

 private:
  const boost::json::object& object_;
  Status status_;
  std::string param_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_FIELDS_H_
