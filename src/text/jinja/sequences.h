// What several filters and methods share: ways to attributes, orders, lines, replacing.
#ifndef SLUICE_SRC_TEXT_JINJA_SEQUENCES_H_
#define SLUICE_SRC_TEXT_JINJA_SEQUENCES_H_

#include <utility>
#include <vector>

#include "src/text/jinja/interpreter.h"

namespace sluice::jinja {

// "a.b.0" or 0: what to take of an item, step by step.
using Path = std::vector<Value>;
Path PathOf(Interpreter& in, const Value& attribute);
Result<Value> Follow(Interpreter& in, Value item, const Path& path,
                     const Value* otherwise = nullptr);
// A text in lower case, anything else as it is.
Value FoldCase(Interpreter& in, const Value& value);
// Sorts items by their keys, stable; both vectors have the same size.
Status SortByKeys(Interpreter& in, const std::vector<Value>& keys, bool reverse,
                  std::vector<Value>& items);

// Lines as byte ranges, without their ends.
struct Line {
  size_t from, to, next;
};
std::vector<Line> Lines(const Text& text);
Result<Text> Replace(Interpreter& in, const Text& text, const Text& old, const Text& by, Int count);
Result<Text> Center(Interpreter& in, const Text& text, Int width, const Text& fill);
Text SoftStr(const Value& value);

}  // namespace sluice::jinja
#endif  // SLUICE_SRC_TEXT_JINJA_SEQUENCES_H_
