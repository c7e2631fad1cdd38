// Templates whose results were worked out by hand, what they may not do, and where the bytes of
// the output come from.
#include "src/text/jinja/jinja.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "tests/text/shared_oracles.h"

namespace sluice::jinja {
namespace {

namespace json = boost::json;

json::object Parsed(std::string_view text) { return json::parse(text).as_object(); }

// The text, or "error: ..." with its message.
std::string Rendered(std::string_view source, std::string_view variables = "{}",
                     const Limits& limits = {}) {
  const auto compiled = Template::Parse(source, limits);
  if (!compiled.ok()) return "error: " + compiled.status().message();
  RenderOptions options;
  options.now = std::tm{};
  options.now->tm_year = 124, options.now->tm_mon = 6, options.now->tm_mday = 26;
  options.now->tm_wday = 5;
  const auto parts = compiled->Render(Parsed(variables), options);
  if (!parts.ok()) return "error: " + parts.status().message();
  std::string text;
  for (const ChatPart& part : *parts) text += part.text;
  return text;
}

// Content in angle quotes: "a«b»c".
std::string Marked(std::string_view source, std::string_view variables,
                   const RenderOptions& options = {}) {
  const auto compiled = Template::Parse(source);
  if (!compiled.ok()) return "error: " + compiled.status().message();
  const auto parts = compiled->Render(Parsed(variables), options);
  if (!parts.ok()) return "error: " + parts.status().message();
  std::string text;
  for (const ChatPart& part : *parts) {
    text += part.frame ? part.text : "\u00AB" + part.text + "\u00BB";
  }
  return text;
}

TEST(Jinja, BlanksAroundTags) {
  EXPECT_EQ(Rendered("a\n  {% if true %}\n  x\n  {% endif %}\nb\n"), "a\n  x\nb");
  EXPECT_EQ(Rendered("a\n  {%- if true -%}\n  x\n  {%- endif -%}\nb"), "axb");
  EXPECT_EQ(Rendered("a\n  {%+ if true +%}\nx{% endif %}"), "a\n  \nx");
  EXPECT_EQ(Rendered("{{ 1 }}\n{{ 2 -}} \n {{- 3 }}\n\n"), "1\n23\n");
  EXPECT_EQ(Rendered("x {% raw -%}  {{ a }}{% endraw %}\ny"), "x {{ a }}y");
  EXPECT_EQ(Rendered("  {# c #}\n{#- d -#}  x\r\ny"), "x\ny");
}

TEST(Jinja, PythonsArithmetic) {
  EXPECT_EQ(Rendered("{{ 7 // -2 }} {{ 7 % -2 }} {{ -7.5 % 2 }} {{ 1 / 2 }} {{ 2 ** -1 }}"),
            "-4 -1 0.5 0.5 0.5");
  EXPECT_EQ(Rendered("{{ -2 ** 2 }} {{ 2 ** 3 ** 2 }}"), "4 64");  // as Jinja binds them
  EXPECT_EQ(Rendered("{{ 1e16 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 100.0 }}"),
            "1e+16 1e-05 0.30000000000000004 100.0");
  EXPECT_EQ(Rendered("{{ true + 1 }} {{ 3 * 'ab' }} {{ [0] * 2 }} {{ (1,) + (2,) }}"),
            "2 ababab [0, 0] (1, 2)");
  EXPECT_EQ(Rendered("{{ 2 ** 100 }}"), "1267650600228229401496703205376");
  EXPECT_EQ(Rendered("{{ 2 ** 127 }}"), "error: line 1: an integer is too large");
  EXPECT_EQ(Rendered("\n{{ 1 % 0 }}"), "error: line 2: division by zero");
}

TEST(Jinja, NumbersOfTheRequestKeepTheirKind) {
  EXPECT_EQ(Rendered("{{ a }} {{ b }} {{ c }}",
                     R"({"a": 18446744073709551615, "b": 2.0, "c": -9223372036854775808})"),
            "18446744073709551615 2.0 -9223372036854775808");
}

TEST(Jinja, ComparesAsPython) {
  EXPECT_EQ(Rendered("{{ 1 == 1.0 }}{{ 1 < 2 < 2 }}{{ [1] == (1,) }}{{ 'b' > 'a' }}"),
            "TrueFalseFalseTrue");
  EXPECT_EQ(Rendered("{{ 1 < 'a' }}"),
            "error: line 1: '<' not supported between instances of 'int' and 'str'");
  EXPECT_EQ(Rendered("{{ 'a' in {'a': 1} }}{{ 1 in [1.0] }}{{ 'lo' not in 'hello' }}"),
            "TrueTrueFalse");
}

TEST(Jinja, CharactersNotBytes) {
  constexpr char kVars[] = R"({"u": "\u00e9\u65e5\ud83d\ude42x"})";
  EXPECT_EQ(Rendered("{{ u|length }} {{ u[1] }} {{ u[::-1] }} {{ u[-2:] }}", kVars),
            "4 \u65e5 x\U0001F642\u65e5\u00e9 \U0001F642x");
  EXPECT_EQ(Rendered("{{ 'stra\u00dfe'.upper() }} {{ u.find('x') }}", kVars), "STRASSE 3");
}

TEST(Jinja, ScopesOfLoopsAndNamespaces) {
  EXPECT_EQ(Rendered("{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}"
                     "{{ x }}"),
            "231");
  EXPECT_EQ(Rendered("{% set n = namespace(a=0) %}{% for i in [1, 2] %}{% set n.a = n.a + i %}"
                     "{% endfor %}{{ n.a }}"),
            "3");
  EXPECT_EQ(Rendered("{% set n = namespace() %}{% set n.me = [n] %}{{ n }}"),
            "<Namespace {'me': [<Namespace {...}>]}>");
}

TEST(Jinja, LoopsKnowWhereTheyAre) {
  EXPECT_EQ(Rendered("{% for c in 'abc' if c != 'b' %}{{ loop.index }}{{ loop.last }}"
                     "{{ loop.previtem }}{{ loop.cycle('x', 'y') }} {% endfor %}"),
            "1Falsex 2Trueay ");
  EXPECT_EQ(Rendered("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}"
                     "{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
            "02");
  EXPECT_EQ(Rendered("{% for n in t recursive %}{{ n.v }}{% if n.c %}({{ loop(n.c) }}){% endif %}"
                     "{% endfor %}",
                     R"({"t": [{"v": 1, "c": [{"v": 2}, {"v": 3}]}]})"),
            "1(23)");
}

TEST(Jinja, MacrosTakeArgumentsAsPython) {
  EXPECT_EQ(Rendered("{% macro m(a, b=a) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}"
                     "{{ m(1) }} {{ m(1, 2, 3, x=4) }}"),
            "11(){} 12(3,){'x': 4}");
  EXPECT_EQ(Rendered("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}"),
            "error: line 1: the macro 'm' takes at most 1 arguments, found 2");
  EXPECT_EQ(Rendered("{% macro m() %}<{{ caller(1) }}>{% endmacro %}"
                     "{% call(x) m() %}{{ x + 1 }}{% endcall %}"),
            "<2>");
}

TEST(Jinja, UndefinedPrintsNothingAndHasNothing) {
  EXPECT_EQ(Rendered("[{{ x }}]{{ x is defined }}{{ x|length }}{{ x.y is defined }}"),
            "error: line 1: 'x' is undefined");
  EXPECT_EQ(Rendered("{{ d.x is defined }}[{{ d.x }}]{{ d['items'] is callable }}", R"({"d": {}})"),
            "False[]True");
  EXPECT_EQ(Rendered("\n\n{{ d.x.y }}", R"({"d": {}})"),
            "error: line 3: 'dict object' has no attribute 'x'");
}

TEST(Jinja, GeneratorsAreSpentOnce) {
  EXPECT_EQ(Rendered("{% set g = [1, 2, 3]|select('odd') %}{{ g|first }}{{ g|list }}{{ g|list }}"),
            "1[3][]");
}

TEST(Jinja, JsonAsPythonWritesIt) {
  constexpr char kVars[] = R"({"d": {"b": [1, 2.0, null, true], "a": "<\u00e9\n>"}})";
  EXPECT_EQ(Rendered("{{ d|tojson }}", kVars),
            "{\"b\": [1, 2.0, null, true], \"a\": \"<\u00e9\\n>\"}");
  EXPECT_EQ(Rendered("{{ d|tojson(indent=1, sort_keys=true, ensure_ascii=true) }}", kVars),
            "{\n \"a\": \"<\\u00e9\\n>\",\n \"b\": [\n  1,\n  2.0,\n  null,\n  true\n ]\n}");
  EXPECT_EQ(Rendered("{{ x|tojson }}"),
            "error: line 1: tojson: a value of type Undefined cannot be written as JSON");
}

TEST(Jinja, FormatsBothWays) {
  EXPECT_EQ(Rendered("{{ '%05.1f|%-4s|%x' % (2.25, 'a', 255) }}"), "002.2|a   |ff");
  EXPECT_EQ(Rendered("{{ '{:>4}{x[0]:,}'.format('a', x=[1234]) }}"), "   a1,234");
  EXPECT_EQ(Rendered("{{ strftime_now('%d %b %Y, %A %j') }}"), "26 Jul 2024, Friday 001");
}

TEST(Jinja, RaisingIsTheTemplatesOwnMessage) {
  EXPECT_EQ(Rendered("\n{{ raise_exception('no ' ~ 1) }}"), "error: no 1");
  EXPECT_EQ(Rendered("{{ raise_exception('two\nlines') }}"), "error: two\\x0Alines");
}

TEST(Jinja, BadTemplatesNameTheirLine) {
  for (const auto& [source, message] : std::vector<std::pair<std::string, std::string>>{
           {"\n{% if x %}", "line 2: this block has no {% endif %}"},
           {"{{ x", "line 1: a tag has no end }}"},
           {"a\n{{ 1 + }}", "line 2: expected an expression, found }}"},
           {"{% what %}", "line 1: unknown tag \"what\""},
           {"{{ x|what }}", "line 1: there is no filter \"what\""},
           {"{{ x is what }}", "line 1: there is no test \"what\""},
           {"{% break %}", "line 1: break outside a loop"},
           {"{# a", "line 1: a comment {# has no end #}"},
           {"{% set 1 = 2 %}",
            "line 1: only names, tuples of names and attributes of a namespace can be set"},
           {"{% include 'x' %}",
            "line 1: {% include %} asks for another template; a chat template stands alone"}}) {
    const auto compiled = Template::Parse(source);
    ASSERT_FALSE(compiled.ok()) << source;
    EXPECT_EQ(compiled.status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(compiled.status().message(), message);
  }
  // What may never run fails only when it does.
  EXPECT_EQ(Rendered("{% if x %}{{ x|what }}{% endif %}ok"), "ok");
}

TEST(Jinja, ValuesCannotBeChangedNorHostObjectsReached) {
  EXPECT_EQ(Rendered("{{ l.append(1) }}", R"({"l": []})"),
            "error: line 1: 'append' would change a list, which templates may not");
  EXPECT_EQ(Rendered("{{ l.__class__.__mro__ }}", R"({"l": []})"),
            "error: line 1: 'list object' has no attribute '__class__'");
}

bool IsError(const std::string& text) {
  return text.starts_with("error: ") && text.find('\n') == std::string::npos;
}

TEST(Jinja, WorkIsBounded) {
  Limits limits;
  limits.steps = 200'000;
  limits.memory_bytes = size_t{16} << 20;
  limits.text_bytes = size_t{1} << 20;
  const std::string forever =
      "{% for a in r %}{% for b in r %}{% for c in r %}{% endfor %}{% endfor %}{% endfor %}";
  EXPECT_TRUE(IsError(Rendered("{% set r = range(1000) %}" + forever, "{}", limits)));
  for (const char* source :
       {"{{ 'a' * 99999999999 }}", "{{ [0] * 99999999999 }}", "{{ range(100001) }}",
        "{{ 'x'|center(10000000) }}", "{{ '%*d' % (99999999, 1) }}",
        "{{ '{:999999999}'.format(1) }}",
        "{% set n = namespace(x='aa') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor "
        "%}",
        "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor "
        "%}"
        "{{ n.x == n.x[0] }}{{ n.x }}",
        "{% set n = namespace(x=[]) %}{% for i in range(900) %}{% set n.x = [n.x] %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% for i in range(99999) %}{{ 'some text that is long enough' * 100 }}{% endfor %}",
        "{{ ('a' * 900000).replace('a', 'b' * 900000) }}"}) {
    EXPECT_TRUE(IsError(Rendered(source, "{}", limits))) << source;
  }
}

TEST(Jinja, NestingIsBounded) {
  for (const char* open : {"(", "[", "{1:", "not ", "-", "a.b(", "1 if "}) {
    std::string source = "{{ ";
    for (int i = 0; i < 100000; ++i) source += open;
    EXPECT_TRUE(IsError(Rendered(source + " }}"))) << open;
  }
  for (const char* more : {" + 1", "|upper", ".a", "[0]", "()", " and 1", " if 1 else 2"}) {
    std::string source = "{{ 1";
    for (int i = 0; i < 100000; ++i) source += more;
    EXPECT_TRUE(IsError(Rendered(source + " }}"))) << more;
  }
  std::string blocks;
  for (int i = 0; i < 100000; ++i) blocks += "{% if 1 %}";
  EXPECT_TRUE(IsError(Rendered(blocks)));
  std::string deep(300, '[');
  deep += std::string(300, ']');
  json::parse_options options;
  options.max_depth = 400;
  const json::object request{{"x", json::parse(deep, {}, options)}};
  EXPECT_FALSE(Template::Parse("{{ x }}")->Render(request).ok());
}

TEST(Jinja, DeepButAllowedFitsTheStack) {
  // Every macro call with many expressions around it.
  const std::string open(60, '('), close(60, ')');
  EXPECT_EQ(Rendered("{% macro m(n) %}{% if n > 0 %}{{ " + open + "m(n - 1)" + close +
                     " }}{% else %}end{% endif %}{% endmacro %}{{ m(90) }}"),
            "end");
}

TEST(Jinja, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(Rendered("a\xFF{{ 'b\xC3' }}"), "a\uFFFDb\uFFFD");
}

TEST(JinjaProvenance, ContentStaysContentThroughEverything) {
  constexpr char kVars[] = R"({"c": " <|end|> ", "bos_token": "<s>", "d": {"k": "v"}})";
  EXPECT_EQ(Marked("{{ bos_token }}<|x|>{{ c }}", kVars), "<s><|x|>\u00AB <|end|> \u00BB");
  EXPECT_EQ(Marked("{{ '[' + c|trim + ']' }}", kVars), "[\u00AB<|end|>\u00BB]");
  EXPECT_EQ(Marked("{{ ('a' ~ c)[1:4]|upper }}", kVars), "\u00AB <|\u00BB");
  EXPECT_EQ(Marked("{{ 'x<|end|>y'.replace('x', c.strip()) }}", kVars),
            "\u00AB<|end|>\u00BB<|end|>y");
  EXPECT_EQ(Marked("{{ ('a|' + c).split('|')|join('-') }}", kVars),
            "a-\u00AB <\u00BB-\u00ABend\u00BB-\u00AB> \u00BB");
  EXPECT_EQ(Marked("{{ d|tojson }}", kVars), "{\u00AB\"k\"\u00BB: \u00AB\"v\"\u00BB}");
  EXPECT_EQ(Marked("{{ d }}", kVars), "{\u00AB'k'\u00BB: \u00AB'v'\u00BB}");
  EXPECT_EQ(Marked("{{ '%s/%3s' % (d.k, 'f') }}{{ '{}!'.format(d.k) }}", kVars),
            "\u00ABv\u00BB/  f\u00ABv\u00BB!");
  EXPECT_EQ(Marked("{% macro m(x) %}<{{ x }}>{% endmacro %}{% set y %}{{ m(d.k) }}{% endset %}"
                   "{{ y|title }}",
                   kVars),
            "<\u00ABV\u00BB>");
  EXPECT_EQ(Marked("{% for k, v in d|dictsort %}{{ k }}={{ v }}{% endfor %}", kVars),
            "\u00ABk\u00BB=\u00ABv\u00BB");
  EXPECT_EQ(Marked("{% for ch in 'a' ~ d.k %}{{ ch }}{% endfor %}{{ ('a' ~ d.k)|reverse }}", kVars),
            "a\u00ABvv\u00BBa");
  EXPECT_EQ(
      Marked("{% macro m() %}{{ kwargs }}{% endmacro %}{{ m(**d) }}{{ dict(**d)|list|first }}",
             kVars),
      "{\u00AB'k'\u00BB: \u00AB'v'\u00BB}\u00ABk\u00BB");
  EXPECT_EQ(Marked("{{ 'a\nb'|indent(d.k) }}{{ [1]|tojson(indent=d.k) }}", kVars),
            "a\n\u00ABv\u00BBb[\n\u00ABv\u00BB1\n]");
  EXPECT_EQ(Marked("{{ '%c' % n }}", R"({"n": 60})"), "\u00AB<\u00BB");
}

TEST(JinjaProvenance, ScalarResultsDoNotDependOnIt) {
  EXPECT_EQ(Marked("{{ c == 'a' }}{{ c in ['a'] }}{{ c|length }}{{ {'a': 1}[c] }}"
                   "{{ ['a', c]|unique|list|length }}",
                   R"({"c": "a"})"),
            "TrueTrue111");
}

TEST(JinjaProvenance, RolesAreContentUnlessTheCallerChoseThem) {
  constexpr char kVars[] = R"({"m": {"role": "user", "content": "user"}})";
  EXPECT_EQ(Marked("<|{{ m.role }}|>{{ m.content }}", kVars),
            "<|\u00ABuser\u00BB|>\u00ABuser\u00BB");
  RenderOptions options;
  options.frame_roles = {"user"};
  EXPECT_EQ(Marked("<|{{ m.role }}|>{{ m.content }}", kVars, options), "<|user|>\u00ABuser\u00BB");
}

class JinjaOracle : public ::testing::TestWithParam<std::string> {};

TEST_P(JinjaOracle, RendersOrRaisesAsTheReference) {
  if (GetParam() == "absent") GTEST_SKIP() << "skipped: no shared oracles";
  const json::object oracle = ReadOracle("templates", GetParam());
  RenderOptions options;
  options.now = std::tm{};
  options.now->tm_year = 124, options.now->tm_mon = 6, options.now->tm_mday = 26;
  options.now->tm_hour = 12, options.now->tm_min = 34, options.now->tm_sec = 56;
  options.now->tm_wday = 5, options.now->tm_yday = 207;
  size_t checked = 0;
  for (const json::value& value : oracle.at("cases").as_array()) {
    const json::object& entry = value.as_object();
    json::object variables;
    if (oracle.contains("vars")) {
      variables = oracle.at("vars").as_object();
    } else {
      variables = {{"messages", entry.at("messages")},
                   {"tools", entry.at("tools")},
                   {"documents", nullptr},
                   {"add_generation_prompt", entry.at("add_generation_prompt")}};
      for (const char* token : {"bos_token", "eos_token"}) {
        if (!oracle.at(token).is_null()) variables[token] = oracle.at(token);
      }
      for (const auto& extra : entry.at("extra").as_object())
        variables[extra.key()] = extra.value();
    }
    const json::value& source =
        oracle.contains("template") ? oracle.at("template") : entry.at("template");
    const std::string text(source.as_string());
    const auto compiled = Template::Parse(text);
    const auto parts = compiled.ok() ? compiled->Render(variables, options) : compiled.status();
    ++checked;
    if (const json::value* error = entry.if_contains("error"); error != nullptr) {
      ASSERT_FALSE(parts.ok()) << text.substr(0, 200);
      if (entry.at("error_kind").as_string() == "raise_exception") {
        EXPECT_EQ(parts.status().message(), std::string(error->as_string()));
      }
      continue;
    }
    ASSERT_TRUE(parts.ok()) << parts.status().message() << "\n" << text.substr(0, 200);
    std::string got;
    for (const ChatPart& part : *parts) got += part.text;
    EXPECT_EQ(got, std::string(entry.at("expected").as_string())) << text.substr(0, 200);
  }
  EXPECT_GT(checked, 5u);
}

INSTANTIATE_TEST_SUITE_P(Templates, JinjaOracle, ::testing::ValuesIn(OracleNames("templates")),
                         [](const auto& param) { return TestName(param.param); });

}  // namespace
}  // namespace sluice::jinja
