// sluice bench on a tiny model: what it prints in each format, lists and ranges, two sides, the
// picture, errors of one line. Nothing here depends on how fast anything was.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <sstream>

#include "tests/base/temp_folder.h"
#include "tests/cli/run_sluice.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

using Rows = std::vector<boost::json::object>;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class BenchCli : public testing::Test {
 protected:
  BenchCli() : model_(TinyModel(TinyLlama("Q4_0")).Write(folder_.path("tiny.gguf"))) {}

  ProgramResult Bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "bench");
    return RunSluice(std::move(arguments),
                     {{"SLUICE_CACHE", folder_.path("cache")}, {"SLUICE_MODELS", folder_.path()}});
  }
  // Of a run that succeeds, with -o jsonl.
  Rows JsonLines(std::vector<std::string> arguments) {
    for (const char* more : {"-o", "jsonl", "-r", "1", "--no-warmup"}) arguments.push_back(more);
    const ProgramResult r = Bench(std::move(arguments));
    EXPECT_EQ(r.exit_code, 0) << r.err;
    Rows rows;
    for (const std::string& line : Lines(r.out)) {
      rows.push_back(boost::json::parse(line).as_object());
    }
    return rows;
  }
  static std::vector<int> Values(const Rows& rows, const char* key) {
    std::vector<int> values;
    for (const auto& row : rows) values.push_back(row.at(key).to_number<int>());
    return values;
  }
  static double Number(const boost::json::object& row, const char* key) {
    return row.at(key).to_number<double>();
  }

  const TempFolder folder_;
  const std::string model_;
};

TEST_F(BenchCli, JsonIsAnArrayWithTheFieldsOfLlamaBenchAndOurs) {
  const ProgramResult r = Bench({model_, "-p", "8", "-n", "3", "-r", "3", "-t", "1", "-o", "json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const boost::json::array rows = boost::json::parse(r.out).as_array();
  ASSERT_EQ(rows.size(), 2u);
  for (const boost::json::value& value : rows) {
    const boost::json::object& row = value.as_object();
    for (const char* key : {"build_commit", "cpu_info", "model_filename", "model_type", "type_k",
                            "type_v", "test_time", "weights", "target"}) {
      EXPECT_FALSE(row.at(key).as_string().empty()) << key;
    }
    for (const char* key :
         {"model_size", "model_n_params", "n_batch", "n_threads", "avg_ns", "avg_ts", "gb_s",
          "read_bandwidth_gb_s", "ceiling_pct", "bandwidth_roof_ts", "compute_roof_ts",
          "compute_gmac_s", "barriers_per_token", "clock_ghz", "n_threads_batch", "concurrency"}) {
      EXPECT_GT(Number(row, key), 0) << key;
    }
    for (const char* key : {"stddev_ns", "stddev_ts", "stall_pct"}) EXPECT_GE(Number(row, key), 0);
    const std::vector<double> ts = boost::json::value_to<std::vector<double>>(row.at("samples_ts"));
    const std::vector<double> ns = boost::json::value_to<std::vector<double>>(row.at("samples_ns"));
    ASSERT_EQ(ts.size(), 3u);
    ASSERT_EQ(ns.size(), 3u);
    const double tokens = Number(row, "n_prompt") + Number(row, "n_gen");
    double sum = 0;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(ts[i] * ns[i] * 1e-9, tokens, 1e-3 * tokens);
      sum += ts[i];
    }
    const double average = Number(row, "avg_ts");
    EXPECT_NEAR(average, sum / 3, 1e-9 * sum);
    EXPECT_LE(Number(row, "ci95_low_ts"), average);
    EXPECT_GE(Number(row, "ci95_high_ts"), average);
    const double roof = std::min(Number(row, "bandwidth_roof_ts"), Number(row, "compute_roof_ts"));
    EXPECT_NEAR(Number(row, "ceiling_pct"), 100 * average / roof, 1e-6 * 100 * average / roof);
    EXPECT_EQ(row.at("binding").as_string(),
              roof == Number(row, "compute_roof_ts") ? "compute" : "bandwidth");
    EXPECT_EQ(row.at("n_depth").to_number<int>(), 0);
    EXPECT_FALSE(row.contains("ratio"));
  }
  EXPECT_EQ(rows[0].at("n_prompt").to_number<int>(), 8);
  EXPECT_EQ(rows[0].at("n_gen").to_number<int>(), 0);
  EXPECT_EQ(rows[1].at("n_prompt").to_number<int>(), 0);
  EXPECT_EQ(rows[1].at("n_gen").to_number<int>(), 3);
}

TEST_F(BenchCli, ListsAndRangesMakeTheCrossProduct) {
  const Rows prompts = JsonLines({"-m", model_, "-p", "2-8*2", "-n", "0", "-d", "0,3"});
  EXPECT_EQ(Values(prompts, "n_prompt"), (std::vector<int>{2, 4, 8, 2, 4, 8}));
  EXPECT_EQ(Values(prompts, "n_depth"), (std::vector<int>{0, 0, 0, 3, 3, 3}));
  EXPECT_TRUE(prompts[0].at("ci95_low_ts").is_null());  // of one sample
  const Rows threads = JsonLines({model_, "-p", "0", "-n", "1-3", "-t", "1,2", "-b", "4"});
  EXPECT_EQ(Values(threads, "n_threads"), (std::vector<int>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(Values(threads, "n_gen"), (std::vector<int>{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(Values(threads, "n_batch"), (std::vector<int>{4, 4, 4, 4, 4, 4}));
}

TEST_F(BenchCli, SequencesTogether) {
  const Rows rows =
      JsonLines({model_, "-p", "2", "-n", "1-3+2", "-np", "1,2", "-pg", "4,2", "-ctk", "q8_0"});
  EXPECT_EQ(Values(rows, "n_prompt"), (std::vector<int>{2, 0, 0, 0, 0, 4, 4}));
  EXPECT_EQ(Values(rows, "n_gen"), (std::vector<int>{0, 1, 1, 3, 3, 2, 2}));
  EXPECT_EQ(Values(rows, "concurrency"), (std::vector<int>{1, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(Number(rows[1], "t_ratio"), 1);
  EXPECT_GT(Number(rows[2], "t_ratio"), 0);
  EXPECT_EQ(rows[0].at("type_k").as_string(), "q8");
  // More sequences than rows of a prompt's pass, or than positions.
  EXPECT_EQ(JsonLines({model_, "-p", "0", "-n", "2", "-b", "1", "-np", "5"}).size(), 1u);
}

TEST_F(BenchCli, ModelsAndTypesMultiply) {
  const std::string other = TinyModel(TinyGemma3()).Write(folder_.path("other.gguf"));
  const Rows rows = JsonLines({"-m", "tiny,other", "-p", "2", "-n", "0", "--weights", "gguf",
                               "--kv-type", "f16,f32", "--huge-pages", "off"});
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].at("model_filename").as_string(), model_);
  EXPECT_EQ(rows[3].at("model_filename").as_string(), other);
  EXPECT_EQ(rows[2].at("type_v").as_string(), "f16");
  EXPECT_EQ(rows[3].at("type_v").as_string(), "f32");
  EXPECT_EQ(rows[3].at("weights").as_string(), "gguf");
  EXPECT_EQ(rows[3].at("huge_pages").as_string(), "off");
  EXPECT_FALSE(rows[3].at("relaxed").as_bool());
  const Rows sides = JsonLines({model_, "-p", "2", "-n", "0", "--vs", "--relaxed"});
  ASSERT_EQ(sides.size(), 2u);
  EXPECT_FALSE(sides[0].at("relaxed").as_bool());
  EXPECT_TRUE(sides[1].at("relaxed").as_bool());
}

TEST_F(BenchCli, TakesTheFlagsOfHowAModelIsHeld) {
  const Rows rows = JsonLines({model_, "-p", "0", "-n", "1", "--portable", "--mlock", "--numa",
                               "interleave", "--vs", "--numa off"});
  ASSERT_EQ(rows.size(), 2u);
  for (const boost::json::object& row : rows) {
    EXPECT_EQ(row.at("portable"), true);
    EXPECT_EQ(row.at("type_k").as_string(), "f16");
    EXPECT_EQ(row.at("mlock"), true);
  }
  EXPECT_EQ(rows[0].at("numa").as_string(), "interleave");
  EXPECT_EQ(rows[1].at("numa").as_string(), "off");
}

TEST_F(BenchCli, MarkdownLooksLikeLlamaBench) {
  const ProgramResult r =
      Bench({model_, "-p", "4", "-n", "2", "-d", "3", "-np", "2", "-r", "2", "-b", "64"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::vector<std::string> lines = Lines(r.out);
  ASSERT_EQ(lines.size(), 6u) << r.out;  // names, rule, two rows, blank, build
  const auto cells = [](const std::string& line) {
    return std::count(line.begin(), line.end(), '|');
  };
  for (int i = 1; i < 4; ++i) EXPECT_EQ(cells(lines[i]), cells(lines[0])) << lines[i];
  for (const char* name :
       {"| model ", " threads ", " test ", " t/s ", " GB/s ", " n_batch ", " np "}) {
    EXPECT_NE(lines[0].find(name), std::string::npos) << name;
  }
  EXPECT_NE(lines[2].find(" pp4 @ d3 |"), std::string::npos) << lines[2];
  EXPECT_NE(lines[3].find(" tg2 @ d3 |"), std::string::npos) << lines[3];
  EXPECT_NE(lines[2].find(" \u00b1 "), std::string::npos);
}

// Values of one line in which every value is quoted.
std::vector<std::string> CsvValues(const std::string& line) {
  std::vector<std::string> values;
  bool inside = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      const bool doubled = inside && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled) values.back() += line[i++];
      if (!doubled && !inside) values.emplace_back();
      if (!doubled) inside = !inside;
    } else if (inside) {
      values.back() += line[i];
    }
  }
  return values;
}

TEST_F(BenchCli, CsvAndSqlHaveOneValueForEachName) {
  const std::string odd = TinyModel(TinyLlama()).Write(folder_.path("it's \"odd\".gguf"));
  const ProgramResult csv = Bench({odd, "-p", "2", "-n", "1", "-r", "1", "-o", "csv"});
  ASSERT_EQ(csv.exit_code, 0) << csv.err;
  const std::vector<std::string> lines = Lines(csv.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].starts_with("build_commit,build_number,cpu_info,")) << lines[0];
  const auto names = std::count(lines[0].begin(), lines[0].end(), ',') + 1;
  for (int i : {1, 2}) {
    const std::vector<std::string> values = CsvValues(lines[i]);
    EXPECT_EQ(static_cast<ptrdiff_t>(values.size()), names);
    EXPECT_NE(std::find(values.begin(), values.end(), odd), values.end()) << lines[i];
  }

  const ProgramResult sql = Bench({odd, "-p", "2", "-n", "1", "-r", "1", "-o", "sql"});
  ASSERT_EQ(sql.exit_code, 0) << sql.err;
  EXPECT_TRUE(sql.out.starts_with("CREATE TABLE IF NOT EXISTS llama_bench (\n")) << sql.out;
  EXPECT_NE(sql.out.find("\n  avg_ts REAL,\n"), std::string::npos);
  EXPECT_NE(sql.out.find("\n  n_prompt INTEGER,\n"), std::string::npos);
  EXPECT_NE(sql.out.find("it''s \"odd\""), std::string::npos);
  size_t inserts = 0;
  for (size_t at = 0; (at = sql.out.find("INSERT INTO llama_bench (", at)) != std::string::npos;
       ++at) {
    ++inserts;
  }
  EXPECT_EQ(inserts, 2u);
}

TEST_F(BenchCli, TwoSidesInTurns) {
  const ProgramResult r = Bench({model_, "-p", "4", "-n", "0", "-r", "3", "-t", "1", "-o", "json",
                                 "--vs", "--weights gguf -ctk f32"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const boost::json::array rows = boost::json::parse(r.out).as_array();
  ASSERT_EQ(rows.size(), 2u);
  const boost::json::object &a = rows[0].as_object(), &b = rows[1].as_object();
  EXPECT_EQ(a.at("side").as_string(), "A");
  EXPECT_NE(a.at("type_k").as_string(), "f32");
  EXPECT_TRUE(a.at("ratio").is_null());
  EXPECT_EQ(b.at("side").as_string(), "B");
  EXPECT_EQ(b.at("type_k").as_string(), "f32");
  EXPECT_EQ(b.at("weights").as_string(), "gguf");
  EXPECT_EQ(b.at("n_prompt"), a.at("n_prompt"));
  EXPECT_EQ(b.at("samples_ts").as_array().size(), 3u);
  EXPECT_GT(Number(b, "ratio"), 0);
  EXPECT_LE(Number(b, "ratio_ci95_low"), Number(b, "ratio"));
  EXPECT_GE(Number(b, "ratio_ci95_high"), Number(b, "ratio"));

  const std::string other = TinyModel(TinyGemma3()).Write(folder_.path("other model.gguf"));
  const Rows models = JsonLines({model_, "-p", "0", "-n", "1", "--vs", "'" + other + "'"});
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].at("model_filename").as_string(), model_);
  EXPECT_EQ(models[1].at("model_filename").as_string(), other);
}

// Enough of XML to see that every element ends, in order, and that text is escaped.
void ExpectWellFormed(const std::string& xml) {
  std::vector<std::string> open;
  size_t roots = 0;
  for (size_t at = 0; at < xml.size();) {
    if (xml[at] != '<') {
      EXPECT_NE(xml[at], '>') << at;
      if (xml[at] == '&') {
        EXPECT_TRUE(xml.substr(at).starts_with("&amp;") || xml.substr(at).starts_with("&lt;") ||
                    xml.substr(at).starts_with("&gt;"))
            << at;
      }
      ++at;
      continue;
    }
    const size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.starts_with('/')) {
      ASSERT_FALSE(open.empty()) << tag;
      EXPECT_EQ("/" + open.back(), tag);
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      roots += open.empty();
      open.push_back(name);
    }
    at = end + 1;
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(roots, 1u);
}

TEST_F(BenchCli, DrawsTheRoofline) {
  const std::string path = folder_.path("roof.svg");
  const ProgramResult r =
      Bench({model_, "-p", "4", "-n", "2", "-np", "1,2", "-r", "1", "--svg", path, "--vs", "-t 2"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::vector<uint8_t> bytes = ReadFile(path);
  const std::string svg(bytes.begin(), bytes.end());
  ExpectWellFormed(svg);
  for (const char* text : {">pp4 (", ">tg2 (", "tg2 \u00d7 2", "GB/s", "prefers-color-scheme"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(svg.find("\"nan"), std::string::npos);
  EXPECT_EQ(svg.find("\"inf"), std::string::npos);
  EXPECT_TRUE(Bench({model_, "--svg", folder_.path("no/x.svg")}).IsOneLineError(1));
}

TEST_F(BenchCli, ProgressOnAPipeIsLines) {
  const ProgramResult r = Bench({model_, "-p", "2", "-n", "0", "-r", "2", "--progress"});
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_NE(r.err.find("row 1 of 1, pp2: 1 of 2 samples\n"), std::string::npos) << r.err;
}

// Without a model. A busy machine is refused: what it measures would be kept.
TEST_F(BenchCli, CalibratesTheMachine) {
  const ProgramResult r = Bench({"--calibrate", "-o", "json"});
  if (r.exit_code != 0) {
    EXPECT_TRUE(r.IsOneLineError(1)) << r.err;
    return;
  }
  const boost::json::object o = boost::json::parse(r.out).as_object();
  EXPECT_GE(o.at("decode_threads").to_number<int>(), 1);
  EXPECT_GE(o.at("prefill_threads").to_number<int>(), 1);
}

TEST_F(BenchCli, ErrorsAreOneLine) {
  const std::vector<std::vector<std::string>> wrong{{"-p", "a"},
                                                    {"-p", "8-4"},
                                                    {"-p", "1-8*1"},
                                                    {"-p", "0-8*2"},
                                                    {"-p", "1-8+0"},
                                                    {"-p", "1,,2"},
                                                    {"-p", "1-8/2"},
                                                    {"-p", "-3"},
                                                    {"-p", "4 "},
                                                    {"-p", "1-2000"},
                                                    {"-n", "99999999999999999999"},
                                                    {"-np", "0"},
                                                    {"-b", "0"},
                                                    {"-t", "2000"},
                                                    {"-r", "0"},
                                                    {"-pg", "5"},
                                                    {"-pg", "0,0"},
                                                    {"-pg", "1,2,3"},
                                                    {"-o", "xml"},
                                                    {"-p", "0", "-n", "0"},
                                                    {"-ctk", "f16", "-ctv", "f32"},
                                                    {"-ctk", "q5_0"},
                                                    {"--weights", "gguf,none"},
                                                    {"--delay", "-1"},
                                                    {"--delay", "nan"},
                                                    {"--svg", ""},
                                                    {"--huge-pages", "maybe"},
                                                    {"-d", "500", "-p", "13"},
                                                    {"-p", "4", "-n", "0", "-d", "512"},
                                                    {"--vs", "--bogus 1"},
                                                    {"--vs", "-p 1,2"},
                                                    {"--vs", "-xyz"},
                                                    {"--vs", ""},
                                                    {"--vs", " "},
                                                    {"--vs", "-p 4"},
                                                    {"--vs", "-n 4"},
                                                    {"--vs", "-d 4"},
                                                    {"--vs", "-np 2"},
                                                    {"--portable", "--relaxed"},
                                                    {"--numa", "both"}};
  for (std::vector<std::string> arguments : wrong) {
    std::string text;
    for (const std::string& a : arguments) text += a + " ";
    arguments.push_back(model_);
    const ProgramResult r = Bench(std::move(arguments));
    EXPECT_TRUE(r.IsOneLineError(2)) << text << "\n" << r.exit_code << "\n" << r.out << r.err;
  }
  EXPECT_TRUE(Bench({folder_.path("none.gguf")}).IsOneLineError(1));
  EXPECT_TRUE(Bench({model_, "--vs", folder_.path("none.gguf")}).IsOneLineError(1));
  const ProgramResult context = Bench({model_, "-d", "500", "-p", "13", "-n", "0"});
  EXPECT_NE(context.err.find("513 positions"), std::string::npos) << context.err;
  EXPECT_NE(context.err.find("trained for 512"), std::string::npos) << context.err;
}

}  // namespace
}  // namespace sluice
