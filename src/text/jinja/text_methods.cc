// Methods of Python's str that make texts or lists.
#include <algorithm>

#include "src/text/jinja/sequences.h"

namespace sluice::jinja {

namespace {

Value Make(Interpreter& in, const Value& self, Text text) {
  return in.heap().MakeText(std::move(text), self.markup());
}

template <Text (*kChange)(const Text&)>
Result<Value> Change(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("this method", args, {}));
  return Make(in, self, kChange(self.text()));
}

template <bool kLeft, bool kRight>
Result<Value> StripMethod(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("strip", args, {"chars"}));
  if (bound.IsNone(0)) return Make(in, self, Strip(self.text(), {}, kLeft, kRight));
  ASSIGN_OR_RETURN(const std::string_view chars, bound.String(0, {}));
  if (chars.empty()) return self;
  return Make(in, self, Strip(self.text(), chars, kLeft, kRight));
}

// Words between blanks, at most `count` splits; the rest stays one word.
std::vector<std::pair<size_t, size_t>> Words(const Text& text, Int count, bool from_right) {
  std::vector<std::pair<size_t, size_t>> words;
  size_t begin = std::string::npos;
  ForEachChar(text, [&](uint32_t code, size_t from, size_t, bool) {
    if (IsSpace(code)) {
      if (begin != std::string::npos) words.emplace_back(begin, from);
      begin = std::string::npos;
    } else if (begin == std::string::npos) {
      begin = from;
    }
  });
  if (begin != std::string::npos) words.emplace_back(begin, text.size());
  if (count < 0 || static_cast<Int>(words.size()) <= count + 1) return words;
  const auto kept = static_cast<size_t>(count);
  if (from_right) {
    const size_t first = words.size() - kept;
    const std::pair<size_t, size_t> rest(0, words[first - 1].second);
    words.erase(words.begin(), words.begin() + static_cast<long>(first));
    words.insert(words.begin(), rest);
  } else {
    words.resize(kept + 1);
    words.back().second = text.size();
  }
  return words;
}

Result<std::vector<std::pair<size_t, size_t>>> Pieces(const Text& text, std::string_view separator,
                                                      Int count, bool from_right) {
  if (separator.empty()) return Error("split: the separator is empty");
  std::vector<std::pair<size_t, size_t>> pieces;
  if (from_right) {
    const std::string mirror(text.bytes().rbegin(), text.bytes().rend());
    const std::string wanted(separator.rbegin(), separator.rend());
    size_t end = 0;  // in the mirror
    while (count < 0 || static_cast<Int>(pieces.size()) < count) {
      const size_t at = Find(mirror, wanted, end);
      if (at == std::string::npos) break;
      pieces.emplace_back(text.size() - at, text.size() - end);
      end = at + separator.size();
    }
    pieces.emplace_back(0, text.size() - end);
    std::reverse(pieces.begin(), pieces.end());
    return pieces;
  }
  size_t from = 0;
  while (count < 0 || static_cast<Int>(pieces.size()) < count) {
    const size_t at = Find(text.bytes(), separator, from);
    if (at == std::string::npos) break;
    pieces.emplace_back(from, at);
    from = at + separator.size();
  }
  pieces.emplace_back(from, text.size());
  return pieces;
}

template <bool kFromRight>
Result<Value> Split(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("split", args, {"sep", "maxsplit"}));
  ASSIGN_OR_RETURN(const Int count, bound.Integer(1, -1));
  const Text& text = self.text();
  std::vector<std::pair<size_t, size_t>> pieces;
  if (bound.IsNone(0)) {
    pieces = Words(text, count, kFromRight);
    // What is left of the text, without the blanks at its outer end.
    if (kFromRight && count == 0) {
      pieces = {{0, Strip(text, {}, false, true).size()}};
      if (pieces[0].second == 0) pieces.clear();
    }
  } else {
    ASSIGN_OR_RETURN(const std::string_view separator, bound.String(0, {}));
    ASSIGN_OR_RETURN(pieces, Pieces(text, separator, count, kFromRight));
  }
  RETURN_IF_ERROR(in.Step(pieces.size()));
  RETURN_IF_ERROR(in.Room(pieces.size() * (sizeof(Value) + sizeof(TextObject) + 16) + text.size()));
  std::vector<Value> items;
  for (const auto& [from, to] : pieces) items.push_back(Make(in, self, text.Sub(from, to)));
  return in.heap().MakeList(std::move(items));
}

Result<Value> SplitLines(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("splitlines", args, {"keepends"}));
  std::vector<Value> items;
  for (const Line& line : Lines(self.text())) {
    RETURN_IF_ERROR(in.Step());
    items.push_back(
        Make(in, self, self.text().Sub(line.from, bound.Truthy(0) ? line.next : line.to)));
  }
  return in.heap().MakeList(std::move(items));
}

template <bool kFromRight>
Result<Value> Partition(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("partition", args, {"sep"}, 1));
  ASSIGN_OR_RETURN(const std::string_view separator, bound.String(0, {}));
  if (separator.empty()) return Error("partition: the separator is empty");
  const Text& text = self.text();
  const size_t at = kFromRight ? FindLast(text.bytes(), separator) : Find(text.bytes(), separator);
  const Value empty = Make(in, self, Text());
  if (at == std::string::npos) {
    return in.heap().MakeList(kFromRight ? std::vector<Value>{empty, empty, self}
                                         : std::vector<Value>{self, empty, empty},
                              Kind::kTuple);
  }
  const size_t end = at + separator.size();
  return in.heap().MakeList({Make(in, self, text.Sub(0, at)), Make(in, self, text.Sub(at, end)),
                             Make(in, self, text.Sub(end, text.size()))},
                            Kind::kTuple);
}

Result<Value> ReplaceMethod(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("replace", args, {"old", "new", "count"}, 2));
  ASSIGN_OR_RETURN(const std::string_view old, bound.String(0, {}));
  ASSIGN_OR_RETURN(const std::string_view by, bound.String(1, {}));
  static_cast<void>(old);
  static_cast<void>(by);
  ASSIGN_OR_RETURN(const Int count, bound.Integer(2, -1));
  ASSIGN_OR_RETURN(Text text, Replace(in, self.text(), bound[0].text(), bound[1].text(), count));
  return Make(in, self, std::move(text));
}

Result<Value> JoinMethod(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("join", args, {"iterable"}, 1));
  ASSIGN_OR_RETURN(const std::vector<Value> items, in.Elements(bound[0]));
  Text out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].Is(Kind::kText)) {
      return Error("join: item " + std::to_string(i) + " is no string but " + TypeName(items[i]));
    }
    if (i > 0) out.Append(self.text());
    out.Append(items[i].text());
    RETURN_IF_ERROR(in.TextRoom(out.size()));
  }
  return Make(in, self, std::move(out));
}

template <bool kLeft>
Result<Value> Justify(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound,
                   Bound::Bind("ljust or rjust", args, {"width", "fillchar"}, 1));
  ASSIGN_OR_RETURN(const Int width, bound.Integer(0, 0));
  const Text fill = bound.Has(1) ? Str(bound[1]) : Text(" ");
  if (CountChars(fill.bytes()) != 1) return Error("the fill is not one character");
  const Int pad = width - static_cast<Int>(CountChars(self.text().bytes()));
  if (pad <= 0) return self;
  if (pad > (Int{1} << 32)) return Error("the width is too large");
  RETURN_IF_ERROR(in.TextRoom(self.text().size() + static_cast<size_t>(pad) * fill.size()));
  RETURN_IF_ERROR(in.Step(static_cast<uint64_t>(pad)));
  Text out;
  if (kLeft) out.Append(self.text());
  for (Int i = 0; i < pad; ++i) out.Append(fill);
  if (!kLeft) out.Append(self.text());
  return Make(in, self, std::move(out));
}

Result<Value> CenterMethod(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("center", args, {"width", "fillchar"}, 1));
  ASSIGN_OR_RETURN(const Int width, bound.Integer(0, 0));
  const Text fill = bound.Has(1) ? Str(bound[1]) : Text(" ");
  if (CountChars(fill.bytes()) != 1) return Error("the fill is not one character");
  ASSIGN_OR_RETURN(Text text, Center(in, self.text(), width, fill));
  return Make(in, self, std::move(text));
}

Result<Value> ZFill(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("zfill", args, {"width"}, 1));
  ASSIGN_OR_RETURN(const Int width, bound.Integer(0, 0));
  const Text& text = self.text();
  const Int pad = width - static_cast<Int>(CountChars(text.bytes()));
  if (pad <= 0) return self;
  if (pad > (Int{1} << 32)) return Error("zfill: the width is too large");
  RETURN_IF_ERROR(in.TextRoom(text.size() + static_cast<size_t>(pad)));
  const bool sign = text.bytes().starts_with('-') || text.bytes().starts_with('+');
  Text out = text.Sub(0, sign);
  out.Append(std::string(static_cast<size_t>(pad), '0'), false);
  out.Append(text, sign, text.size());
  return Make(in, self, std::move(out));
}

template <bool kPrefix>
Result<Value> Remove(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("removeprefix", args, {"part"}, 1));
  ASSIGN_OR_RETURN(const std::string_view part, bound.String(0, {}));
  const Text& text = self.text();
  if (kPrefix && text.bytes().starts_with(part)) {
    return Make(in, self, text.Sub(part.size(), text.size()));
  }
  if (!kPrefix && text.bytes().ends_with(part)) {
    return Make(in, self, text.Sub(0, text.size() - part.size()));
  }
  return self;
}

Result<Value> ExpandTabs(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("expandtabs", args, {"tabsize"}));
  ASSIGN_OR_RETURN(const Int given, bound.Integer(0, 8));
  if (given > 1000) return Error("expandtabs: the tab is too wide");
  const auto size = static_cast<size_t>(std::max<Int>(given, 0));
  RETURN_IF_ERROR(in.TextRoom(self.text().size() * std::max<size_t>(size, 1)));
  Text out;
  size_t column = 0;
  ForEachChar(self.text(), [&](uint32_t code, size_t from, size_t to, bool content) {
    if (code == '\t') {
      const size_t blanks = size == 0 ? 0 : size - column % size;
      column += blanks;
      return out.Append(std::string(blanks, ' '), content);
    }
    column = code == '\n' || code == '\r' ? 0 : column + 1;
    out.Append(self.text(), from, to);
  });
  return Make(in, self, std::move(out));
}

Result<Value> FormatMethod(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(Text text, FormatBraces(in, self.text(), args));
  return Make(in, self, std::move(text));
}

}  // namespace

std::span<const NamedBuiltin> TextMethods() {
  static constexpr NamedBuiltin kMethods[] = {{"upper", Change<Upper>},
                                              {"lower", Change<Lower>},
                                              {"capitalize", Change<Capitalize>},
                                              {"title", Change<TitleWords>},
                                              {"swapcase", Change<SwapCase>},
                                              {"casefold", Change<CaseFold>},
                                              {"strip", StripMethod<true, true>},
                                              {"lstrip", StripMethod<true, false>},
                                              {"rstrip", StripMethod<false, true>},
                                              {"split", Split<false>},
                                              {"rsplit", Split<true>},
                                              {"splitlines", SplitLines},
                                              {"partition", Partition<false>},
                                              {"rpartition", Partition<true>},
                                              {"replace", ReplaceMethod},
                                              {"join", JoinMethod},
                                              {"ljust", Justify<true>},
                                              {"rjust", Justify<false>},
                                              {"center", CenterMethod},
                                              {"zfill", ZFill},
                                              {"removeprefix", Remove<true>},
                                              {"removesuffix", Remove<false>},
                                              {"expandtabs", ExpandTabs},
                                              {"format", FormatMethod}};
  return kMethods;
}

}  // namespace sluice::jinja
