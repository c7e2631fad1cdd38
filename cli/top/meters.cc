#include "cli/top/meters.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

namespace sluice::top {

namespace {

constexpr size_t kTitle = 12;  // columns of "throttled" and the blanks around it
// Room beside a bar for " 100 %  1234.5 of 1234.5 GB/s".
constexpr size_t kBeside = 34, kWidestBar = 100, kLeastBar = 10;
constexpr size_t kOthers = 5;  // lines beside those of the bandwidth

class MeterLines {
 public:
  MeterLines(size_t width, size_t most, bool utf8) : width_(width), most_(most), utf8_(utf8) {}

  LineBuilder Titled(std::string_view title) const {
    LineBuilder line(width_, utf8_);
    line.Add(" ").Add(title, Style::kDim).PadTo(kTitle);
    return line;
  }
  size_t bar() const {
    const size_t rest = width_ - std::min(width_, kTitle + kBeside);
    return std::clamp(rest, kLeastBar, kWidestBar);
  }
  void Push(LineBuilder line) {
    if (lines_.size() < most_) lines_.push_back(line.Take());
  }
  // A bar, the share, and what stands beside them.
  void Gauge(std::string_view title, std::span<const BarPart> parts, Number share,
             const std::string& beside) {
    LineBuilder line = Titled(title);
    line.AddBar(bar(), parts).Add(" ");
    line.Add(Fit(PercentText(share), 5, false, utf8_), Style::kStrong).Add("  ");
    if (line.left() >= Columns(beside)) line.Add(beside, Style::kDim);
    Push(std::move(line));
  }
  size_t left() const { return most_ - lines_.size(); }
  bool utf8() const { return utf8_; }
  std::vector<Line> Take() { return std::move(lines_); }

 private:
  const size_t width_, most_;
  const bool utf8_;
  std::vector<Line> lines_;
};

std::string GigaBytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", bytes / 1e9);
  return text;
}

std::string ReadText(Number read, Number ceiling) {
  if (!read) return ceiling ? "of " + GigaBytes(*ceiling) + " GB/s" : "";
  return GigaBytes(*read) + (ceiling ? " of " + GigaBytes(*ceiling) : "") + " GB/s";
}

void AddRoofs(const View& view, MeterLines* out) {
  const auto roof = [&](std::string_view title, Number share, const std::string& beside) {
    const BarPart part{share.value_or(0), Style::kGood};
    out->Gauge(title, {&part, 1}, share, beside);
  };
  if (view.bandwidth || view.read_ceiling_bytes_s) {
    Number ceiling = view.read_ceiling_bytes_s;
    if (!view.nodes.empty()) {
      double sum = 0;
      for (const NodeLoad& node : view.nodes) sum += node.ceiling_bytes_s;
      if (sum > 0) ceiling = sum;
    }
    roof("bandwidth", view.bandwidth,
         ReadText(view.read_bytes_s, ceiling) + (view.idle ? ", idle" : ""));
  }
  // One node is what the line above says. The lines below need room too.
  const size_t room = out->left() > kOthers + 1 ? out->left() - kOthers : 1;
  const size_t shown = view.nodes.size() <= room ? view.nodes.size() : room - 1;
  for (size_t i = 0; i < shown && view.nodes.size() > 1; ++i) {
    const NodeLoad& node = view.nodes[i];
    Number share;
    if (node.ceiling_bytes_s > 0) share = node.read_bytes_s / node.ceiling_bytes_s;
    roof(" node " + Ascii(node.node), share, ReadText(node.read_bytes_s, node.ceiling_bytes_s));
  }
  if (shown < view.nodes.size()) {
    LineBuilder line = out->Titled("");
    line.Add(std::to_string(view.nodes.size() - shown) + " nodes more", Style::kDim);
    out->Push(std::move(line));
  }
  if (view.compute) roof("compute", view.compute, view.idle ? "idle" : "of the kernels' speed");
}

void AddPool(const View& view, MeterLines* out) {
  if (!view.kv_used) return;
  const Style style = *view.kv_used > 0.95  ? Style::kBad
                      : *view.kv_used > 0.8 ? Style::kWarn
                                            : Style::kBusy;
  const BarPart parts[] = {{*view.kv_used, style}, {view.kv_kept.value_or(0), style, 1}};
  std::string beside;
  if (view.kv_kept) beside = PercentText(view.kv_kept) + " kept, ";
  if (view.kv_pages) beside += CountText(view.kv_pages) + " pages";
  out->Gauge("KV pool", parts, view.kv_used, beside);
}

// What is the work itself; the rest is waiting.
bool IsWork(std::string_view cause) {
  return cause == "weight_stream" || cause == "kv_stream" || cause == "compute";
}

void AddStalls(const View& view, MeterLines* out) {
  if (view.stalls.empty()) return;
  LineBuilder line = out->Titled("stalls");
  std::string_view comma;
  for (const StallShare& stall : view.stalls) {
    if (stall.share < 0.005) break;
    std::string cause = Ascii(stall.cause);
    std::replace(cause.begin(), cause.end(), '_', ' ');
    const std::string text = cause + " " + PercentText(stall.share);
    if (line.left() < text.size() + 3) break;
    const Style style = IsWork(stall.cause) ? Style::kGood
                        : stall.share > 0.1 ? Style::kBad
                                            : Style::kWarn;
    line.Add(comma, Style::kDim).Add(text, style);
    comma = ", ";
  }
  out->Push(std::move(line));
}

// Numbers that should not grow.
void AddFaults(const View& view, MeterLines* out) {
  LineBuilder line = out->Titled("faults");
  std::string_view gap;
  const auto add = [&](std::string_view what, Number total, Number per_second) {
    if (!total) return;
    const bool now = per_second.value_or(0) > 0;
    std::string text = std::string(what) + CountText(total);
    if (now) text += " (" + PerSecondText(per_second) + ")";
    if (line.left() < text.size() + gap.size()) return;
    line.Add(gap).Add(text, now ? Style::kBad : Style::kPlain);
    gap = "   ";
  };
  add("from disk ", view.major_faults, view.major_faults_s);
  add("throttled ", view.throttled, view.throttled_s);
  add("preempted ", view.preemptions, view.preemptions_s);
  if (!gap.empty()) out->Push(std::move(line));
}

void AddResident(const View& view, MeterLines* out) {
  LineBuilder line = out->Titled("memory");
  std::string_view comma;
  const auto add = [&](const std::string& text, Style style) {
    if (line.left() < text.size() + 2) return;
    line.Add(comma).Add(text, style);
    comma = ", ";
  };
  if (view.resident_bytes) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.1f GiB resident", *view.resident_bytes / (1 << 30));
    add(text, Style::kPlain);
  }
  if (view.weights_resident) {
    add(PercentText(view.weights_resident) + " of the weights in RAM",
        *view.weights_resident < 0.99 ? Style::kBad : Style::kPlain);
  }
  if (view.cache_hits) add("prompts cached " + PercentText(view.cache_hits), Style::kPlain);
  if (!comma.empty()) out->Push(std::move(line));
}

void AddHistory(const std::deque<double>& history, MeterLines* out) {
  static constexpr const char* kUtf8[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char* kAscii[] = {" ", ".", ".", "-", "-", "=", "=", "#", "#"};
  if (history.size() < 2) return;
  const double most = *std::max_element(history.begin(), history.end());
  const size_t cells = out->bar(), shown = std::min(cells, history.size());
  std::string graph(cells - shown, ' ');
  for (size_t i = history.size() - shown; i < history.size(); ++i) {
    const auto level = most > 0 ? static_cast<size_t>(history[i] / most * 8 + 0.5) : 0;
    graph += (out->utf8() ? kUtf8 : kAscii)[level];
  }
  LineBuilder line = out->Titled("tok/s");
  line.Add(graph, Style::kGood).PadTo(kTitle + cells + 8).Add("at most ", Style::kDim);
  line.Add(RateText(most), Style::kDim);
  out->Push(std::move(line));
}

}  // namespace

std::vector<Line> Meters(const TopState& state, size_t width, size_t most, bool utf8,
                         bool history) {
  const View& view = state.view();
  MeterLines out(width, most, utf8);
  AddRoofs(view, &out);
  AddPool(view, &out);
  AddStalls(view, &out);
  AddFaults(view, &out);
  AddResident(view, &out);
  if (history) AddHistory(state.history(), &out);
  return out.Take();
}

}  // namespace sluice::top
