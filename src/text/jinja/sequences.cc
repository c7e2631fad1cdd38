#include "src/text/jinja/sequences.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace sluice::jinja {

Text SoftStr(const Value& value) { return Str(value); }

Path PathOf(Interpreter& in, const Value& attribute) {
  if (attribute.Is(Kind::kNone)) return {};
  if (!attribute.Is(Kind::kText)) return {attribute};
  Path path;
  const Text& text = attribute.text();
  for (size_t from = 0; from <= text.size();) {
    const size_t dot = std::min(text.bytes().find('.', from), text.size());
    const std::string part = text.bytes().substr(from, dot - from);
    const bool number =
        !part.empty() && part.size() < 18 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    path.push_back(number ? Value::Of(static_cast<Int>(std::stoll(part)))
                          : in.heap().MakeText(text.Sub(from, dot)));
    from = dot + 1;
  }
  return path;
}

Result<Value> Follow(Interpreter& in, Value item, const Path& path, const Value* otherwise) {
  for (const Value& part : path) {
    ASSIGN_OR_RETURN(item, in.GetItem(item, part));
    if (item.undefined() && otherwise != nullptr) item = *otherwise;
  }
  return item;
}

Value FoldCase(Interpreter& in, const Value& value) {
  return value.Is(Kind::kText) ? in.heap().MakeText(Lower(value.text())) : value;
}

Status SortByKeys(Interpreter& in, const std::vector<Value>& keys, bool reverse,
                  std::vector<Value>& items) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  Status status;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (!status.ok()) return false;
    if (reverse) std::swap(a, b);
    const Result<bool> less = in.Less(keys[a], keys[b]);
    if (!less.ok()) status = less.status();
    return less.ok() && *less;
  });
  RETURN_IF_ERROR(status);
  std::vector<Value> sorted;
  sorted.reserve(items.size());
  for (const size_t at : order) sorted.push_back(items[at]);
  items = std::move(sorted);
  return Status();
}

std::vector<Line> Lines(const Text& text) {
  std::vector<Line> lines;
  const std::string& bytes = text.bytes();
  size_t from = 0;
  for (size_t at = 0; at < bytes.size();) {
    const DecodedChar c = DecodeChar(bytes, at);
    const size_t here = at;
    at += c.length;
    if (!IsLineBreak(c.code)) continue;
    if (c.code == '\r' && at < bytes.size() && bytes[at] == '\n') ++at;
    lines.push_back({from, here, at});
    from = at;
  }
  if (from < bytes.size()) lines.push_back({from, bytes.size(), bytes.size()});
  return lines;
}

Result<Text> Replace(Interpreter& in, const Text& text, const Text& old, const Text& by,
                     Int count) {
  RETURN_IF_ERROR(in.Step((text.size() + by.size()) / 32));
  std::vector<size_t> places;
  const std::string& bytes = text.bytes();
  const auto more = [&] { return count < 0 || static_cast<Int>(places.size()) < count; };
  if (old.empty()) {
    for (size_t at = 0; at <= bytes.size() && more();) {
      places.push_back(at);
      at += at < bytes.size() ? DecodeChar(bytes, at).length : 1;
    }
  } else {
    for (size_t at = Find(bytes, old.bytes()); at != std::string::npos && more();
         at = Find(bytes, old.bytes(), at + old.size())) {
      places.push_back(at);
    }
  }
  RETURN_IF_ERROR(in.Step(places.size()));
  RETURN_IF_ERROR(in.TextRoom(text.size()));
  if (by.size() > old.size()) {
    const size_t extra = by.size() - old.size();
    if (!places.empty() && extra > (size_t{1} << 40) / places.size())
      return Error("replace: the result is too large");
    RETURN_IF_ERROR(in.TextRoom(text.size() + extra * places.size()));
  }
  Text out;
  size_t from = 0;
  for (const size_t at : places) {
    out.Append(text, from, at);
    out.Append(by);
    from = at + old.size();
  }
  out.Append(text, from, text.size());
  return out;
}

Result<Text> Center(Interpreter& in, const Text& text, Int width, const Text& fill) {
  const Int pad = width - static_cast<Int>(CountChars(text.bytes()));
  if (pad <= 0) return text;
  if (pad > (Int{1} << 40)) return Error("center: the width is too large");
  RETURN_IF_ERROR(in.TextRoom(text.size() + static_cast<size_t>(pad) * fill.size()));
  RETURN_IF_ERROR(in.Step(static_cast<uint64_t>(pad)));
  const Int left = pad / 2 + (pad & width & 1);
  Text out;
  for (Int i = 0; i < left; ++i) out.Append(fill);
  out.Append(text);
  for (Int i = left; i < pad; ++i) out.Append(fill);
  return out;
}

}  // namespace sluice::jinja
