// Filters that write for other languages: JSON, HTML, URLs, Python.
#include <algorithm>

#include "src/text/jinja/sequences.h"

namespace sluice::jinja {

namespace {

Result<Value> Escape(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("escape", args, {}));
  if (self.markup()) return self;
  return in.heap().MakeText(EscapeHtml(Str(self)), true);
}

Result<Value> ForceEscape(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("forceescape", args, {}));
  return in.heap().MakeText(EscapeHtml(Str(self)), true);
}

Result<Value> Safe(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("safe", args, {}));
  return in.heap().MakeText(Str(self), true);
}

Result<Value> StripTags(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("striptags", args, {}));
  Text text = Str(self);
  for (const auto& [open, close] : {std::pair("<!--", "-->"), std::pair("<", ">")}) {
    Text kept;
    size_t from = 0;
    while (true) {
      const size_t begin = Find(text.bytes(), open, from);
      const size_t end = begin == std::string::npos ? begin : Find(text.bytes(), close, begin);
      if (end == std::string::npos) break;
      kept.Append(text, from, begin);
      from = end + std::string_view(close).size();
    }
    kept.Append(text, from, text.size());
    text = std::move(kept);
  }
  Text out;
  bool blank = false;
  ForEachChar(text, [&](uint32_t code, size_t from, size_t to, bool content) {
    if (IsSpace(code)) {
      blank = !out.empty();
      return;
    }
    if (std::exchange(blank, false)) out.Append(" ", content);
    out.Append(text, from, to);
  });
  for (const auto& [name, by] :
       {std::pair("&lt;", "<"), std::pair("&gt;", ">"), std::pair("&#34;", "\""),
        std::pair("&quot;", "\""), std::pair("&#39;", "'"), std::pair("&nbsp;", "\u00A0"),
        std::pair("&amp;", "&")}) {
    if (Find(out.bytes(), name) == std::string::npos) continue;
    Text plain;
    size_t from = 0;
    for (size_t at = Find(out.bytes(), name); at != std::string::npos;
         at = Find(out.bytes(), name, from)) {
      plain.Append(out, from, at);
      plain.Append(by, out.ContentAt(at));
      from = at + std::string_view(name).size();
    }
    plain.Append(out, from, out.size());
    out = std::move(plain);
  }
  return in.heap().MakeText(std::move(out));
}

void AppendQuoted(const Text& text, bool query, Text& out) {
  for (const Text::Run& run : text.runs()) {
    const size_t begin = &run == text.runs().data() ? 0 : (&run)[-1].end;
    std::string quoted;
    for (size_t at = begin; at < run.end; ++at) {
      const char c = text.bytes()[at];
      const char lower = static_cast<char>(c | 0x20);
      if ((c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '_' || c == '.' ||
          c == '-' || c == '~' || (c == '/' && !query)) {
        quoted += c;
      } else if (c == ' ' && query) {
        quoted += '+';
      } else {
        constexpr char kHex[] = "0123456789ABCDEF";
        quoted += '%';
        quoted += kHex[static_cast<uint8_t>(c) >> 4];
        quoted += kHex[static_cast<uint8_t>(c) & 15];
      }
    }
    out.Append(quoted, run.content);
  }
}

Result<Value> UrlEncode(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("urlencode", args, {}));
  Text out;
  const bool pairs = (self.kind >= Kind::kList && self.kind <= Kind::kItems) || self.undefined();
  if (!pairs) {
    AppendQuoted(Str(self), false, out);
    return in.heap().MakeText(std::move(out));
  }
  const Value from = self.Is(Kind::kDict) ? Value::Of(Kind::kItems, self.object) : self;
  ASSIGN_OR_RETURN(const std::vector<Value> items, in.Elements(from));
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(const std::vector<Value> pair, in.Elements(item));
    if (pair.size() != 2) return Error("urlencode: expected pairs");
    if (!out.empty()) out.Append("&", false);
    AppendQuoted(Str(pair[0]), true, out);
    out.Append("=", false);
    AppendQuoted(Str(pair[1]), true, out);
  }
  return in.heap().MakeText(std::move(out));
}

Result<Value> XmlAttr(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("xmlattr", args, {"autospace"}));
  if (!self.Is(Kind::kDict)) return Error("xmlattr: expected a dict");
  Text out;
  for (const auto& [key, value] : self.dict().entries) {
    if (value.Is(Kind::kNone) || value.undefined()) continue;
    const Text name = Str(key);
    if (name.bytes().find_first_of(" \t\n\v\f\r/>=") != std::string::npos) {
      return Error("xmlattr: a name holds a character that no attribute may have");
    }
    if (!out.empty() || bound.Truthy(0, true)) out.Append(" ", false);
    out.Append(EscapeHtml(name));
    out.Append("=\"", false);
    out.Append(value.markup() ? value.text() : EscapeHtml(Str(value)));
    out.Append("\"", false);
  }
  return in.heap().MakeText(std::move(out));
}

Result<Value> ToJson(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(
      const Bound bound,
      Bound::Bind("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  constexpr size_t kMaxIndent = 1000;
  JsonOptions options;
  options.ascii = bound.Truthy(0);
  options.sort_keys = bound.Truthy(3);
  if (!bound.IsNone(1)) {
    options.indented = true;
    options.item_separator = Text(",");
    if (bound[1].Is(Kind::kText)) {
      options.indent = bound[1].text();
    } else {
      ASSIGN_OR_RETURN(const Int width, bound.Integer(1, 0));
      if (width > kMaxIndent) return Error("tojson: the indent is too large");
      options.indent = Text(std::string(static_cast<size_t>(std::max<Int>(width, 0)), ' '));
    }
  }
  if (options.indent.size() > kMaxIndent) return Error("tojson: the indent is too large");
  if (!bound.IsNone(2)) {
    ASSIGN_OR_RETURN(const std::vector<Value> two, in.Elements(bound[2]));
    if (two.size() != 2 || !two[0].Is(Kind::kText) || !two[1].Is(Kind::kText)) {
      return Error("tojson: separators are two strings");
    }
    options.item_separator = two[0].text();
    options.key_separator = two[1].text();
  }
  Text out;
  RETURN_IF_ERROR(AppendJson(self, options, 0, out));
  RETURN_IF_ERROR(in.TextRoom(out.size()));
  return in.heap().MakeText(std::move(out));
}

// The same with the keys of dicts in order.
Value Sorted(Interpreter& in, const Value& v) {
  if (v.Is(Kind::kDict)) {
    std::vector<std::pair<Value, Value>> entries = v.dict().entries;
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return Str(a.first).bytes() < Str(b.first).bytes();
    });
    const Value dict = in.heap().MakeDict();
    for (const auto& [key, value] : entries) in.heap().SetEntry(dict, key, Sorted(in, value));
    return dict;
  }
  if (!v.Is(Kind::kList) && !v.Is(Kind::kTuple)) return v;
  std::vector<Value> items;
  for (const Value& item : v.list().items) items.push_back(Sorted(in, item));
  return in.heap().MakeList(std::move(items), v.kind);
}

void AppendPretty(const Value& v, size_t column, size_t tail, Text& out);

// Items of a list, tuple or dict, one a line, when they do not fit one.
void AppendPrettyItems(const Value& v, size_t column, size_t tail, Text& out) {
  const bool is_dict = v.Is(Kind::kDict);
  std::vector<std::pair<Value, Value>> entries;
  if (is_dict) {
    entries = v.dict().entries;
  } else {
    for (const Value& item : v.list().items) entries.emplace_back(Value(), item);
  }
  const char* brackets[] = {"[", "]", "(", ")", "{", "}"};
  const size_t which = is_dict ? 4 : v.Is(Kind::kTuple) ? 2 : 0;
  out.Append(brackets[which], false);
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool last = i + 1 == entries.size();
    size_t at = column + 1;
    if (is_dict) {
      const size_t before = out.size();
      AppendRepr(entries[i].first, out);
      out.Append(": ", false);
      at += CountChars(std::string_view(out.bytes()).substr(before));
    }
    AppendPretty(entries[i].second, at, last ? tail + 1 : 1, out);
    if (!last) out.Append(",\n" + std::string(column + 1, ' '), false);
  }
  if (which == 2 && entries.size() == 1) out.Append(",", false);
  out.Append(brackets[which + 1], false);
}

void AppendPretty(const Value& v, size_t column, size_t tail, Text& out) {
  constexpr size_t kWidth = 80;
  const bool holds = (v.Is(Kind::kDict) && !v.dict().entries.empty()) ||
                     ((v.Is(Kind::kList) || v.Is(Kind::kTuple)) && !v.list().items.empty());
  Text line;
  if (!holds || Weight(v) < 20000) AppendRepr(v, line);
  if (holds && (line.empty() || column + CountChars(line.bytes()) + tail > kWidth)) {
    return AppendPrettyItems(v, column, tail, out);
  }
  out.Append(line);
}

Result<Value> Pprint(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("pprint", args, {}));
  RETURN_IF_ERROR(in.Step(Weight(self)));
  Text out;
  RETURN_IF_ERROR(in.Room(Weight(self) * 4));
  AppendPretty(Sorted(in, self), 0, 0, out);
  RETURN_IF_ERROR(in.TextRoom(out.size()));
  return in.heap().MakeText(std::move(out));
}

}  // namespace

std::span<const NamedBuiltin> HtmlFilters() {
  static constexpr NamedBuiltin kFilters[] = {
      {"escape", Escape},   {"e", Escape},
      {"safe", Safe},       {"forceescape", ForceEscape},
      {"tojson", ToJson},   {"striptags", StripTags},
      {"xmlattr", XmlAttr}, {"urlencode", UrlEncode},
      {"pprint", Pprint},
  };
  return kFilters;
}

}  // namespace sluice::jinja
