#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <span>
#include <utility>

#include "cli/wrap.h"
#include "src/text/json_text.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::milliseconds kNextLine{250};
constexpr size_t kBarCells = 24;

std::string Bar(uint64_t done, uint64_t total) {
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto full = static_cast<size_t>(share * kBarCells);
  char percent[16];
  std::snprintf(percent, sizeof(percent), " %3.0f%%", 100 * share);
  return "[" + std::string(full, '#') + std::string(kBarCells - full, '.') + "]" + percent;
}

// One decimal, of the largest unit that leaves at least 1.
std::string InUnits(double value, double step, std::span<const char* const> units) {
  size_t unit = 0;
  for (; value >= step - 0.05 && unit + 1 < units.size(); ++unit) value /= step;
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

std::string Left(double seconds) {
  char text[32];
  const auto s = static_cast<unsigned long long>(seconds + 0.5);
  std::snprintf(text, sizeof(text), ", %llu:%02llu left", s / 60, s % 60);
  return text;
}

}  // namespace

std::string HumanBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return InUnits(static_cast<double>(bytes), 1024, kUnits);
}

std::string TrafficBytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  return InUnits(bytes, 1000, kUnits);
}

Progress::Progress(std::string title, Unit unit)
    : title_(std::move(title)), unit_(unit), visible_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

void Progress::Update(uint64_t done, uint64_t total, const std::string& note) {
  if (!visible_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  first_ = std::min(first_, done);
  if (now - drawn_ < kRedraw && done < total) return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done - first_) / seconds : 0;

  std::string line = title_ + " ";
  if (total > 0) line += Bar(done, total) + " ";
  if (unit_ == Unit::kBytes) {
    line += HumanBytes(done);
    if (rate > 0) line += ", " + TrafficBytes(rate) + "/s";
  } else {
    line += std::to_string(done);
    if (total > 0) line += "/" + std::to_string(total);
  }
  // Before a fiftieth is done an estimate is noise.
  if (total > done && done - first_ > total / 50)
    line += Left(static_cast<double>(total - done) / rate);
  if (!note.empty()) line += "  " + note;
  line.resize(std::min(line.size(), ColumnsOf(stderr) - 1));
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  std::fflush(stderr);
}

void ProgressLines::Update(uint64_t done, uint64_t total) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  const bool end = total > 0 && done >= total;
  if (now - written_ < kNextLine && !end) return;
  written_ = now;
  const boost::json::object line{{"title", title_}, {"completed", done}, {"total", total}};
  std::fprintf(stderr, "%s\n", ToJson(line).c_str());
}

}  // namespace sluice
