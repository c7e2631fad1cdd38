// Filters of texts.
#include <algorithm>

#include "src/text/jinja/sequences.h"

namespace sluice::jinja {

namespace {

// A filter that makes one text of another.
template <Text (*kChange)(const Text&)>
Result<Value> Change(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("this filter", args, {}));
  return in.heap().MakeText(kChange(SoftStr(self)), self.markup());
}

Status NoString(const char* filter, const Value& self) {
  if (self.undefined()) return Error(WhyUndefined(self));
  return Error(std::string(filter) + ": expected a string, found " + TypeName(self));
}

// Words begin after blanks, hyphens and opening brackets.
Text Title(const Text& text) {
  Text out;
  const std::string_view kBreaks = "-({[<";
  size_t word = 0;
  const auto flush = [&](size_t end) {
    if (end > word) {
      const size_t first = word + DecodeChar(text.bytes(), word).length;
      out.Append(Upper(text.Sub(word, first)));
      out.Append(Lower(text.Sub(first, end)));
    }
  };
  ForEachChar(text, [&](uint32_t code, size_t from, size_t to, bool) {
    if (!IsSpace(code) && (code > 0x7F || kBreaks.find(static_cast<char>(code)) == kBreaks.npos)) {
      return;
    }
    flush(from);
    out.Append(text, from, to);
    word = to;
  });
  flush(text.size());
  return out;
}

Result<Value> Trim(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("trim", args, {"chars"}));
  const Text text = SoftStr(self);
  if (bound.IsNone(0)) return in.heap().MakeText(Strip(text, {}, true, true), self.markup());
  ASSIGN_OR_RETURN(const std::string_view chars, bound.String(0, {}));
  if (chars.empty()) return in.heap().MakeText(text, self.markup());
  return in.heap().MakeText(Strip(text, chars, true, true), self.markup());
}

Result<Value> ReplaceFilter(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("replace", args, {"old", "new", "count"}, 2));
  Int count = -1;
  if (!bound.IsNone(2)) {
    ASSIGN_OR_RETURN(count, bound.Integer(2, -1));
  }
  ASSIGN_OR_RETURN(Text text, Replace(in, Str(self), Str(bound[0]), Str(bound[1]), count));
  return in.heap().MakeText(std::move(text));
}

Result<Value> Indent(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("indent", args, {"width", "first", "blank"}));
  if (!self.Is(Kind::kText)) return NoString("indent", self);
  Text indention;
  if (bound.Has(0) && bound[0].Is(Kind::kText)) {
    indention = bound[0].text();
  } else {
    ASSIGN_OR_RETURN(const Int width, bound.Integer(0, 4));
    if (width > 10000) return Error("indent: the width is too large");
    indention.Append(std::string(static_cast<size_t>(std::max<Int>(width, 0)), ' '), false);
  }
  Text text = self.text();
  text.Append("\n", false);
  const std::vector<Line> lines = Lines(text);
  RETURN_IF_ERROR(in.Step(lines.size()));
  if (indention.size() > (size_t{1} << 30) / lines.size()) {
    return Error("indent: the result is too large");
  }
  RETURN_IF_ERROR(in.TextRoom(text.size() + lines.size() * indention.size()));
  Text out;
  if (bound.Truthy(1)) out.Append(indention);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out.Append("\n", false);
      if (bound.Truthy(2) || lines[i].to > lines[i].from) out.Append(indention);
    }
    out.Append(text, lines[i].from, lines[i].to);
  }
  return in.heap().MakeText(std::move(out), self.markup());
}

Result<Value> Truncate(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound,
                   Bound::Bind("truncate", args, {"length", "killwords", "end", "leeway"}));
  if (!self.Is(Kind::kText)) return NoString("truncate", self);
  ASSIGN_OR_RETURN(const Int length, bound.Integer(0, 255));
  ASSIGN_OR_RETURN(const std::string_view end, bound.String(2, "..."));
  const Int end_chars = static_cast<Int>(CountChars(end));
  Int leeway = 5;
  if (!bound.IsNone(3)) {
    ASSIGN_OR_RETURN(leeway, bound.Integer(3, 5));
  }
  if (length < end_chars) return Error("truncate: the length is less than that of the end");
  if (leeway < 0) return Error("truncate: the leeway is negative");
  const Text& text = self.text();
  constexpr Int kFar = Int{1} << 62;
  if (static_cast<Int>(CountChars(text.bytes())) <=
      std::min(length, kFar) + std::min(leeway, kFar)) {
    return self;
  }
  size_t cut = OffsetOf(text.bytes(), static_cast<size_t>(length - end_chars));
  if (!bound.Truthy(1)) {
    const size_t blank = cut == 0 ? std::string::npos : text.bytes().rfind(' ', cut - 1);
    if (blank != std::string::npos) cut = blank;
  }
  Text out = text.Sub(0, cut);
  out.Append(bound.Has(2) ? bound[2].text() : Text("..."));
  return in.heap().MakeText(std::move(out), self.markup());
}

bool IsWordChar(uint32_t code) { return code == '_' || IsAlpha(code) || IsNumeric(code); }

Result<Value> WordCount(Interpreter&, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("wordcount", args, {}));
  Int count = 0;
  bool inside = false;
  ForEachChar(SoftStr(self), [&](uint32_t code, size_t, size_t, bool) {
    const bool word = IsWordChar(code);
    count += word && !inside;
    inside = word;
  });
  return Value::Of(count);
}

Result<Value> CenterFilter(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("center", args, {"width"}));
  ASSIGN_OR_RETURN(const Int width, bound.Integer(0, 80));
  ASSIGN_OR_RETURN(Text text, Center(in, SoftStr(self), width, Text(" ")));
  return in.heap().MakeText(std::move(text), self.markup());
}

Result<Value> String(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("string", args, {}));
  if (self.Is(Kind::kText)) return self;
  Text text = Str(self);
  RETURN_IF_ERROR(in.TextRoom(text.size()));
  return in.heap().MakeText(std::move(text));
}

Result<Value> Format(Interpreter& in, const Value& self, Args& args) {
  if (!args.values.empty() && !args.named.empty()) {
    return Error("format takes arguments by position or by name, not both");
  }
  Value values;
  if (args.named.empty()) {
    values = in.heap().MakeList(args.values, Kind::kTuple);
  } else {
    values = in.heap().MakeDict();
    for (const auto& [name, value] : args.named) in.heap().SetEntry(values, name, value);
  }
  ASSIGN_OR_RETURN(Text text, FormatPercent(in, SoftStr(self), values));
  return in.heap().MakeText(std::move(text), self.markup());
}

// Words and the blanks between them, as byte ranges; long words also end at a hyphen in them.
std::vector<std::pair<size_t, size_t>> Chunks(const Text& line, bool at_hyphens) {
  const std::string& bytes = line.bytes();
  const auto blank = [&](size_t at) {
    return bytes[at] == ' ' || (bytes[at] >= 9 && bytes[at] <= 13);
  };
  const auto letter = [&](size_t at) {
    return at < bytes.size() &&
           (bytes[at] == '_' || ((bytes[at] | 0x20) >= 'a' && (bytes[at] | 0x20) <= 'z') ||
            (bytes[at] & 0x80) != 0);
  };
  const auto word = [&](size_t at) {
    return letter(at) || (at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9');
  };
  std::vector<std::pair<size_t, size_t>> chunks;
  for (size_t at = 0; at < bytes.size();) {
    const size_t from = at;
    const bool is_blank = blank(at);
    while (at < bytes.size() && blank(at) == is_blank) {
      ++at;
      if (at_hyphens && !is_blank && bytes[at - 1] == '-' && at >= from + 3 && letter(at - 2) &&
          word(at - 3) && word(at) && letter(at + 1)) {
        break;
      }
    }
    chunks.emplace_back(from, at);
  }
  return chunks;
}

Result<Value> WordWrap(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound,
                   Bound::Bind("wordwrap", args,
                               {"width", "break_long_words", "wrapstring", "break_on_hyphens"}));
  if (!self.Is(Kind::kText)) return NoString("wordwrap", self);
  ASSIGN_OR_RETURN(const Int given, bound.Integer(0, 79));
  if (given <= 0) return Error("wordwrap: the width must be positive");
  const auto width = static_cast<size_t>(std::min<Int>(given, Int{1} << 30));
  const Text separator = bound.IsNone(2) ? Text("\n") : Str(bound[2]);
  const Text& text = self.text();
  Text out;
  bool first_line = true;
  for (const Line& source : Lines(text)) {
    const Text line = text.Sub(source.from, source.to);
    const auto chunks = Chunks(line, bound.Truthy(3, true));
    Text row;
    size_t row_chars = 0;
    bool any = false, blank_start = true;
    const auto flush = [&] {
      Text kept = Strip(row, " \t\n\v\f\r", false, true);
      row = Text();
      row_chars = 0;
      if (kept.empty()) return;
      if (!std::exchange(first_line, false)) out.Append(separator);
      out.Append(kept);
      any = true;
    };
    for (auto [from, to] : chunks) {
      RETURN_IF_ERROR(in.Step());
      RETURN_IF_ERROR(in.TextRoom(out.size() + row.size()));
      const bool is_blank = Strip(line.Sub(from, to), {}, true, true).empty();
      if (is_blank && row.empty() && !blank_start) continue;  // no blanks start a later row
      size_t chars = CountChars(std::string_view(line.bytes()).substr(from, to - from));
      if (row_chars + chars > width && !row.empty() && !(chars > width && bound.Truthy(1, true))) {
        flush();
        if (is_blank) continue;
      }
      while (chars > width - row_chars && bound.Truthy(1, true)) {  // cut a word that fits no row
        const size_t cut = OffsetOf(std::string_view(line.bytes()).substr(from), width - row_chars);
        row.Append(line, from, from + cut);
        chars -= width - row_chars;
        from += cut;
        flush();
        RETURN_IF_ERROR(in.Step());
      }
      row.Append(line, from, to);
      row_chars += chars;
      blank_start = false;
    }
    flush();
    if (!any && !std::exchange(first_line, false)) out.Append(separator);
  }
  return in.heap().MakeText(std::move(out), self.markup());
}

}  // namespace

std::span<const NamedBuiltin> TextFilters() {
  static constexpr NamedBuiltin kFilters[] = {
      {"upper", Change<Upper>}, {"lower", Change<Lower>}, {"capitalize", Change<Capitalize>},
      {"title", Change<Title>}, {"trim", Trim},           {"replace", ReplaceFilter},
      {"indent", Indent},       {"truncate", Truncate},   {"wordcount", WordCount},
      {"wordwrap", WordWrap},   {"center", CenterFilter}, {"string", String},
      {"format", Format}};
  return kFilters;
}

}  // namespace sluice::jinja
