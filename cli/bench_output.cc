#include "cli/bench_output.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <utility>

#include "cli/wrap.h"
#include "sluice_commit.h"
#include "src/base/printable.h"
#include "src/machine/simd_target.h"
#include "src/machine/topology.h"
#include "src/text/json_text.h"

namespace sluice {
namespace {

template <class... T>
std::string Printf(const char* format, T... values) {
  char buffer[160];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

boost::json::value Optional(const std::optional<double>& number) {
  if (!number) return nullptr;
  return *number;
}

boost::json::array Numbers(const std::vector<double>& values, bool whole) {
  boost::json::array list;
  for (const double v : values) {
    list.push_back(whole ? boost::json::value(static_cast<uint64_t>(v)) : boost::json::value(v));
  }
  return list;
}

std::string Text(const boost::json::value& v) {
  if (v.is_null()) return "";
  if (v.is_string()) return std::string(v.get_string());
  return ToJson(v);
}

// ' for SQL, " for CSV: doubled inside.
std::string Quoted(const std::string& text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote) out += quote;
    out += c;
  }
  return out + quote;
}

std::string SqlValue(const boost::json::value& v) {
  if (v.is_null()) return "NULL";
  if (v.is_bool()) return v.get_bool() ? "1" : "0";
  return v.is_string() ? Quoted(Text(v), '\'') : Text(v);
}

const char* SqlType(const boost::json::value& v) {
  if (v.is_string()) return "TEXT";
  return v.is_double() || v.is_null() ? "REAL" : "INTEGER";
}

// A markdown cell; width < 0: to the left. The name may hold two-byte characters.
std::string Cell(const std::string& text, int width) {
  const auto columns = std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
  const size_t pad = static_cast<size_t>(std::max<ptrdiff_t>(0, std::abs(width) - columns));
  const std::string blanks(pad, ' ');
  return width < 0 ? " " + text + blanks + " |" : " " + blanks + text + " |";
}

std::string Rule(int width) {
  const std::string dashes(static_cast<size_t>(std::abs(width)) - (width > 0), '-');
  return " " + dashes + (width > 0 ? ": |" : " |");
}

struct Column {
  std::string name;
  int width;  // < 0: to the left
  std::string value;
  int rank = 0;    // of what a narrow terminal goes without; 0: never
  int narrow = 0;  // its width there; 0: as always
};

// A terminal with less room than llama-bench's columns take gets those that say most.
std::vector<Column> Fitting(std::vector<Column> columns, size_t room) {
  const auto widths = [&] {
    std::vector<TableColumn> list{{1, 0}};  // the line's first bar
    for (const Column& c : columns) {
      list.push_back({static_cast<size_t>(std::abs(c.width)) + 3, c.rank});
    }
    return list;
  };
  size_t all = 0;
  for (const TableColumn& c : widths()) all += c.width;
  if (all <= room) return columns;
  for (Column& c : columns) {
    if (c.narrow != 0) c.width = c.narrow;
  }
  const std::vector<bool> shown = ShownColumns(widths(), room);
  std::vector<Column> fitting;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (shown[i + 1]) fitting.push_back(std::move(columns[i]));
  }
  return fitting;
}

// As llama-bench writes them.
std::string SizeText(uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib < 1024 ? Printf("%.2f MiB", mib) : Printf("%.2f GiB", mib / 1024);
}
std::string CountText(uint64_t n) {
  const double millions = static_cast<double>(n) / 1e6;
  return millions < 1000 ? Printf("%.2f M", millions) : Printf("%.2f B", millions / 1000);
}

std::string RatioText(const BenchRow& row) {
  if (!row.ratio) return row.side == 'A' ? "1" : "";
  std::string text = Printf("%.3f", row.ratio->value);
  if (const auto& i = row.ratio->interval) text += Printf(" [%.3f, %.3f]", i->low, i->high);
  return text;
}

}  // namespace

std::string UtcTime() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string BenchTestName(const BenchTest& t) {
  std::string name;
  if (t.prompt > 0) name = "pp" + std::to_string(t.prompt);
  if (t.generate > 0) name += (name.empty() ? "tg" : "+tg") + std::to_string(t.generate);
  if (t.depth > 0) name += " @ d" + std::to_string(t.depth);
  return name;
}

boost::json::object BenchRowJson(const BenchRow& row) {
  const BenchResult& r = row.result;
  const std::vector<double> ts = r.samples_ts();
  const std::optional<Interval> ci = MeanInterval95(ts);
  const char* kv = KvTypeName(*row.setup.kv_type);
  boost::json::object o{{"build_commit", SLUICE_COMMIT},
                        {"build_number", 0},
                        {"cpu_info", Printable(ThisMachine().cpu_name)},
                        {"gpu_info", ""},
                        {"backends", "CPU"},
                        {"model_filename", Printable(row.model.path, 4096)},
                        {"model_type", Printable(row.model.type)},
                        {"model_size", row.model.bytes},
                        {"model_n_params", row.model.parameters},
                        {"n_batch", row.setup.batch},
                        {"n_ubatch", row.setup.batch},
                        {"n_threads", row.setup.threads},
                        {"type_k", kv},
                        {"type_v", kv},
                        {"n_gpu_layers", 0},
                        {"flash_attn", 1},
                        {"n_prompt", r.test.prompt},
                        {"n_gen", r.test.generate},
                        {"n_depth", r.test.depth},
                        {"test_time", row.time},
                        {"avg_ns", static_cast<uint64_t>(r.avg_ns())},
                        {"stddev_ns", static_cast<uint64_t>(StandardDeviation(r.samples_ns))},
                        {"avg_ts", r.avg_ts()},
                        {"stddev_ts", StandardDeviation(ts)}};
  o["build_version"] = SLUICE_VERSION;
  o["target"] = SimdTarget();
  o["n_threads_batch"] = row.setup.threads_batch;
  o["concurrency"] = r.test.concurrency;
  o["weights"] = LoadModeName(row.setup.weights);
  o["huge_pages"] = row.setup.huge_pages;
  o["relaxed"] = row.setup.relaxed;
  o["portable"] = row.setup.portable;
  o["mlock"] = row.setup.mlock;
  o["numa"] = row.setup.numa;
  o["ci95_low_ts"] = ci ? Optional(ci->low) : nullptr;
  o["ci95_high_ts"] = ci ? Optional(ci->high) : nullptr;
  o["gb_s"] = r.gb_s();
  o["read_bandwidth_gb_s"] = r.read_bandwidth_gb_s;
  o["ceiling_pct"] = r.ceiling_pct();
  o["ceiling_remark"] = r.ceiling_remark();
  o["bandwidth_roof_ts"] = r.bandwidth_roof_ts();
  o["compute_roof_ts"] = r.compute_roof_ts();
  o["binding"] = r.compute_binds() ? "compute" : "bandwidth";
  o["compute_gmac_s"] = r.gmac_s();
  o["bytes_per_token"] = r.work.bytes / static_cast<double>(r.test.tokens());
  o["mac_per_byte"] = r.work.macs() / r.work.bytes;
  o["t_ratio"] = Optional(row.t_ratio);
  o["barriers_per_token"] = r.barriers_per_token;
  o["stall_pct"] = r.stall_pct;
  o["lost_pct"] = r.lost_pct;
  o["clock_ghz"] = r.clock_ghz;
  o["other_load_pct"] = r.other_pct;
  o["steal_pct"] = r.steal_pct;
  o["throttled_periods"] = r.throttled;
  if (row.side != 0) {
    o["side"] = std::string(1, row.side);
    o["ratio"] = row.ratio ? Optional(row.ratio->value) : nullptr;
    const bool interval = row.ratio && row.ratio->interval;
    o["ratio_ci95_low"] = interval ? Optional(row.ratio->interval->low) : nullptr;
    o["ratio_ci95_high"] = interval ? Optional(row.ratio->interval->high) : nullptr;
  }
  o["samples_ns"] = Numbers(r.samples_ns, true);
  o["samples_ts"] = Numbers(ts, false);
  return o;
}

BenchPrinter::BenchPrinter(BenchFormat format, std::span<const BenchPlan> plans, bool versus)
    : format_(format), versus_(versus) {
  const BenchSetup usual;
  for (const BenchPlan& plan : plans) {
    models_ |= plan.setup.model != plans[0].setup.model;
    threads_ |= plan.setup.threads != plans[0].setup.threads;
    batch_ |= plan.setup.batch != usual.batch;
    kv_type_ |= plan.setup.kv_type != usual.kv_type;
    huge_pages_ |= plan.setup.huge_pages != usual.huge_pages;
    weights_ |= plan.setup.weights != usual.weights;
    threads_batch_ |= plan.setup.threads_batch != usual.threads_batch;
    np_ |= plan.test.concurrency != 1;
  }
}

void BenchPrinter::Print(const BenchRow& row) {
  switch (format_) {
    case BenchFormat::kMarkdown:
      PrintMarkdown(row);
      break;
    case BenchFormat::kJson:
      std::printf("%s\n  %s", rows_ == 0 ? "[" : ",", ToJson(BenchRowJson(row)).c_str());
      break;
    case BenchFormat::kJsonl:
      std::printf("%s\n", ToJson(BenchRowJson(row)).c_str());
      break;
    case BenchFormat::kCsv:
    case BenchFormat::kSql:
      PrintTable(row);
      break;
  }
  std::fflush(stdout);
  ++rows_;
}

void BenchPrinter::PrintTable(const BenchRow& row) {
  const bool sql = format_ == BenchFormat::kSql;
  std::string names, types, values;
  for (const auto& [key, value] : BenchRowJson(row)) {
    if (value.is_array()) continue;
    const std::string name(key), comma = names.empty() ? "" : sql ? ", " : ",";
    types += (types.empty() ? "  " : ",\n  ") + name + " " + SqlType(value);
    names += comma + name;
    values += comma + (sql ? SqlValue(value) : Quoted(Text(value), '"'));
  }
  if (sql) {
    if (rows_ == 0) {
      std::printf("CREATE TABLE IF NOT EXISTS llama_bench (\n%s\n);\n\n", types.c_str());
    }
    std::printf("INSERT INTO llama_bench (%s) VALUES (%s);\n", names.c_str(), values.c_str());
  } else {
    if (rows_ == 0) std::printf("%s\n", names.c_str());
    std::printf("%s\n", values.c_str());
  }
}

void BenchPrinter::PrintMarkdown(const BenchRow& row) {
  const BenchResult& r = row.result;
  const size_t room = ColumnsOf(stdout, SIZE_MAX);
  std::vector<Column> columns;
  const auto add = [&](bool shown, const char* name, int width, std::string value, int rank = 0,
                       int narrow = 0) {
    if (shown) columns.push_back({name, width, std::move(value), rank, narrow});
  };
  const BenchSetup& s = row.setup;
  const bool passes = r.test.generate > 0;
  add(versus_, "", -1, std::string(1, row.side));
  add(true, "model", -30, Printable(row.model.type), models_ ? 0 : 1, -22);
  add(true, "size", 10, SizeText(row.model.bytes), 8);
  add(true, "params", 10, CountText(row.model.parameters), 9);
  add(true, "backend", -10, "CPU", 10);
  add(true, "threads", 7, std::to_string(s.threads), threads_ ? 0 : 4);
  add(threads_batch_, "prefill threads", 15, std::to_string(s.threads_batch));
  add(batch_, "n_batch", 7, std::to_string(s.batch));
  add(kv_type_, "kv", 4, KvTypeName(*s.kv_type));
  add(weights_, "weights", -7, LoadModeName(s.weights));
  add(huge_pages_, "huge pages", -10, s.huge_pages);
  add(np_, "np", 3, std::to_string(r.test.concurrency));
  add(true, "test", 15, BenchTestName(r.test), 0, 11);
  const bool whole = room < SIZE_MAX && r.avg_ts() >= 1e4;  // of which decimals say nothing
  add(true, "t/s", 20,
      Printf(whole ? "%.0f \u00b1 %.0f" : "%.2f \u00b1 %.2f", r.avg_ts(),
             StandardDeviation(r.samples_ts())),
      0, 15);
  add(np_, "T(np)/T(1)", 10, row.t_ratio && passes ? Printf("%.2f", *row.t_ratio) : "");
  add(versus_, "B/A [95 %]", 22, RatioText(row));
  add(true, "GB/s", 6, Printf("%.1f", r.gb_s()), 3);
  const std::string remark = r.ceiling_remark();
  add(true, "% of roof", 9,
      Printf("%.0f", r.ceiling_pct()) + (remark.empty() ? "" : " (" + remark + ")"), 2, 13);
  add(true, "roof t/s", 9, Printf("%.1f", r.roof_ts()), 5);
  add(true, "binds", -9, r.compute_binds() ? "compute" : "bandwidth", 6);
  add(true, "stall %", 7, Printf("%.1f", r.stall_pct), 7);
  columns = Fitting(std::move(columns), room);
  if (rows_ == 0) {
    std::string names = "|", rules = "|";
    for (const Column& c : columns) {
      names += Cell(c.name, c.width);
      rules += Rule(c.width);
    }
    std::printf("%s\n%s\n", names.c_str(), rules.c_str());
  }
  std::string line = "|";
  for (const Column& c : columns) line += Cell(c.value, c.width);
  std::printf("%s\n", line.c_str());
}

void BenchPrinter::End() {
  if (format_ == BenchFormat::kJson) std::printf("%s]\n", rows_ == 0 ? "[" : "\n");
  if (format_ == BenchFormat::kMarkdown && rows_ > 0) {
    const std::string build = std::string("build: ") + SLUICE_COMMIT + " (" + SLUICE_VERSION +
                              "), " + Printable(ThisMachine().cpu_name) + ", " + SimdTarget();
    std::printf("\n%s\n", Wrapped(build, 0, ColumnsOf(stdout, 0)).c_str());
  }
}

}  // namespace sluice
