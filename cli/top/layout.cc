#include "cli/top/layout.h"

#include <algorithm>

#include "cli/top/columns.h"
#include "cli/top/help.h"
#include "cli/top/meters.h"

namespace sluice::top {

namespace {

constexpr size_t kUnbounded = 100000;  // lines
constexpr size_t kTallEnough = 30;     // for the history
constexpr size_t kDetailTitle = 12;    // columns

Style StyleOf(const RequestRow& row) {
  if (row.phase == "decode") return Style::kGood;
  return row.phase == "prefill" ? Style::kBusy : Style::kWarn;
}

class Frame {
 public:
  Frame(const std::string& url, const TopState& state, const Controls& controls, const Size& size)
      : url_(Ascii(url)),
        state_(state),
        view_(state.view()),
        controls_(controls),
        size_(size),
        plain_(size.height == 0),
        height_(plain_ ? kUnbounded : size.height) {}

  std::vector<Line> Make() {
    if (!plain_ && (size_.width < kLeastWidth || size_.height < kLeastHeight)) return TooSmall();
    AddHead();
    switch (controls_.pane) {
      case Pane::kHelp:
        AddHelp();
        break;
      case Pane::kDetail:
        AddMeters();
        AddDetail();
        break;
      case Pane::kList:
        AddMeters();
        AddTable();
    }
    if (plain_) return std::move(lines_);
    lines_.resize(size_.height - 1);
    lines_.push_back(Foot());
    return std::move(lines_);
  }

  size_t PageRows() {
    AddHead();
    if (controls_.pane == Pane::kHelp) return left();
    AddMeters();
    return TableRows();
  }

 private:
  LineBuilder NewLine() const { return {size_.width, size_.utf8}; }
  void Push(LineBuilder line) { lines_.push_back(line.Take()); }
  size_t left() const { return height_ - std::min(height_, lines_.size() + (plain_ ? 0 : 1)); }

  std::vector<Line> TooSmall() const {
    LineBuilder line = NewLine();
    line.Add("at least " + std::to_string(kLeastWidth) + "x" + std::to_string(kLeastHeight) +
             " needed, this is " + std::to_string(size_.width) + "x" +
             std::to_string(size_.height));
    return {line.Take()};
  }

  void AddHead() {
    LineBuilder title = NewLine();
    title.Add(" sluice top  ", Style::kStrong).Add(url_);
    for (const std::string& model : view_.models) title.Add("  " + Ascii(model), Style::kStrong);
    if (view_.kind != ServerKind::kSluice && view_.kind != ServerKind::kUnknown) {
      title.Add(std::string("  ") + ServerKindName(view_.kind), Style::kDim);
    }
    const std::string right = controls_.paused ? "PAUSED " : EveryText();
    if (!plain_ && title.left() > right.size()) {
      title.PadTo(size_.width - right.size());
      title.Add(right, controls_.paused ? Style::kWarn : Style::kDim);
    }
    Push(std::move(title));
    Push(state_.error().empty() ? Summary() : NoAnswer());
  }

  std::string EveryText() const {
    std::string text = std::to_string(controls_.interval_s);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return "every " + text + " s ";
  }

  LineBuilder NoAnswer() const {
    LineBuilder line = NewLine();
    line.Add(" no answer from ", Style::kBad).Add(url_, Style::kBad);
    line.Add(plain_ ? ": " : ", trying again: ", Style::kBad).Add(Ascii(state_.error()));
    return line;
  }

  LineBuilder Summary() const {
    LineBuilder line = NewLine();
    if (view_.kind == ServerKind::kUnknown) {
      line.Add(" asking the server", Style::kDim);
      return line;
    }
    line.Add(" ").Add(CountText(view_.running), Style::kStrong).Add(" running  ");
    const bool queue = view_.waiting.value_or(0) > 0;
    line.Add(CountText(view_.waiting), queue ? Style::kWarn : Style::kStrong).Add(" waiting   ");
    line.Add("decode ").Add(RateText(view_.decode_tok_s), Style::kStrong).Add(" tok/s   ");
    line.Add("prefill ").Add(RateText(view_.prefill_tok_s), Style::kStrong).Add(" tok/s");
    return line;
  }

  // They leave the table its head and some rows.
  void AddMeters() {
    const size_t rows = height_ < 16 ? 3 : 6;
    const size_t most = left() - std::min(left(), rows + 2);
    for (Line& line :
         Meters(state_, size_.width, most, size_.utf8, !plain_ && height_ >= kTallEnough)) {
      lines_.push_back(std::move(line));
    }
    lines_.emplace_back();
  }

  size_t TableRows() const { return left() - std::min<size_t>(left(), 1); }

  void AddTable() {
    const std::vector<PlacedColumn> columns = PlaceColumns(view_, size_.width);
    AddTableHead(columns);
    const std::vector<const RequestRow*> rows =
        SortedRows(view_, controls_.sort, controls_.reversed);
    if (rows.empty()) return AddNoRows();
    const RequestRow* selected = controls_.Selected(view_);
    const size_t room = left();
    const size_t shown = rows.size() <= room ? rows.size() : room - std::min<size_t>(room, 1);
    const auto at =
        static_cast<size_t>(std::find(rows.begin(), rows.end(), selected) - rows.begin());
    const size_t first = at < shown ? 0 : at + 1 - shown;
    for (size_t i = first; i < first + shown; ++i) {
      AddRow(*rows[i], columns, !plain_ && rows[i] == selected);
    }
    if (shown == rows.size() || room == 0) return;
    LineBuilder line = NewLine();
    line.Add(" " + std::to_string(rows.size() - shown) + " more", Style::kDim);
    Push(std::move(line));
  }

  void AddNoRows() {
    if (view_.kind == ServerKind::kUnknown) return;
    LineBuilder line = NewLine();
    line.Add(view_.lists_requests ? " no request runs or waits"
                                  : " no list of requests: " + Ascii(view_.slots_error),
             Style::kDim);
    Push(std::move(line));
  }

  void AddTableHead(const std::vector<PlacedColumn>& columns) {
    LineBuilder line = NewLine();
    for (const PlacedColumn& column : columns) {
      const Column& about = AllColumns()[column.index];
      const bool sorted = column.index == controls_.sort;
      const bool up = sorted && controls_.reversed;
      const std::string mark = !sorted ? " " : size_.utf8 ? (up ? "▴" : "▾") : (up ? "^" : "v");
      // In the blank before the column, or where its title begins.
      line.Add(Fit(mark + about.title, column.width + 1, about.left, size_.utf8),
               sorted ? Style::kSorted : Style::kHeader);
    }
    if (!plain_) line.Add(std::string(line.left(), ' '), Style::kHeader);
    Push(std::move(line));
  }

  void AddRow(const RequestRow& row, const std::vector<PlacedColumn>& columns, bool selected) {
    LineBuilder line = NewLine();
    bool first = true;
    for (const PlacedColumn& column : columns) {
      const Column& about = AllColumns()[column.index];
      line.Add(first && selected ? ">" : " ");
      line.Add(Fit(about.text(row), column.width, about.left, size_.utf8),
               first ? StyleOf(row) : Style::kPlain);
      first = false;
    }
    if (selected) line.PadTo(size_.width);
    Push(std::move(line));
    lines_.back().selected = selected;
  }

  LineBuilder Titled(std::string_view title) const {
    LineBuilder line = NewLine();
    line.Add(" ").Add(title, Style::kDim).PadTo(kDetailTitle);
    return line;
  }
  void AddFact(std::string_view title, const std::string& text, Style style = Style::kPlain) {
    if (left() == 0) return;
    LineBuilder line = Titled(title);
    line.Add(text, style);
    Push(std::move(line));
  }
  void AddGauge(std::string_view title, Number share, Style style, const std::string& text) {
    if (left() == 0) return;
    LineBuilder line = Titled(title);
    const size_t cells = std::clamp<size_t>(size_.width / 4, 10, 60);
    const BarPart part{share.value_or(0), style};
    line.AddBar(cells, {&part, 1}).Add(" " + Fit(PercentText(share), 5, false, size_.utf8) + "  ");
    line.Add(text);
    Push(std::move(line));
  }

  void AddDetail() {
    const RequestRow* row = controls_.Selected(view_);
    if (row == nullptr || row->key != controls_.selected) {
      LineBuilder line = NewLine();
      line.Add(" this request has ended", Style::kDim);
      return Push(std::move(line));
    }
    AddFact("request", Ascii(row->name), Style::kStrong);
    AddFact("phase", Ascii(row->phase), StyleOf(*row));
    std::string where = row->model.empty() ? "" : Ascii(row->model) + ", ";
    where += row->slot ? "slot " + CountText(row->slot) : "no slot yet";
    AddFact("model", where);
    Number prompt;
    if (row->processed_tokens && row->prompt_tokens.value_or(0) > 0) {
      prompt = *row->processed_tokens / *row->prompt_tokens;
    }
    AddGauge("prompt", prompt, Style::kBusy,
             CountText(row->processed_tokens) + " of " + CountText(row->prompt_tokens) +
                 " tokens, " + CountText(row->cached_tokens) + " cached");
    Number output;
    if (row->generated_tokens && row->max_tokens.value_or(0) > 0) {
      output = *row->generated_tokens / *row->max_tokens;
    }
    AddGauge("output", output, Style::kGood,
             CountText(row->generated_tokens) +
                 (row->max_tokens ? " of " + CountText(row->max_tokens) : "") + " tokens");
    if (row->ceiling) {
      AddGauge("ceiling", row->ceiling, Style::kGood, "of the bandwidth");
    }
    AddFact("speed", "prefill " + RateText(row->prefill_tok_s) + " tok/s, decode " +
                         RateText(row->decode_tok_s) + " tok/s");
    if (row->whole_s()) {
      AddFact("time", "queue " + SecondsText(row->queue_s) + ", prefill " +
                          SecondsText(row->prefill_s) + ", decode " + SecondsText(row->decode_s));
    }
  }

  void AddHelp() {
    constexpr size_t kNames = 18;  // columns
    const std::vector<HelpLine> help = HelpLines(view_, size_.width);
    const size_t room = left();
    const size_t first = std::min(controls_.help_top, help.size() - std::min(help.size(), room));
    const size_t end = std::min(help.size(), first + room);
    for (size_t i = first; i < end; ++i) {
      LineBuilder line = NewLine();
      line.Add(" ").Add(help[i].name, Style::kStrong).PadTo(kNames).Add(help[i].what);
      Push(std::move(line));
    }
    help_below_ = help.size() - end;
  }

  Line Foot() const {
    LineBuilder line = NewLine();
    if (!controls_.asking.empty()) {
      line.Add(" cancel ", Style::kWarn);
      const size_t room = line.left() - std::min<size_t>(line.left(), 8);
      const std::string id = Ascii(controls_.asking);
      line.Add(Fit(id, std::min(id.size(), room), true, size_.utf8), Style::kStrong);
      line.Add("? y/n", Style::kWarn);
      return line.Take();
    }
    if (!controls_.message.empty()) {
      line.Add(" " + Ascii(controls_.message), Style::kWarn);
      return line.Take();
    }
    if (controls_.pane == Pane::kHelp) {
      line.Add(" q").Add(" back", Style::kDim);
      if (controls_.help_top > 0 || help_below_ > 0) {
        line.Add("  up, down").Add(" scroll", Style::kDim);
      }
      if (help_below_ > 0) line.Add("  " + std::to_string(help_below_) + " more", Style::kDim);
      return line.Take();
    }
    static constexpr const char* kKeys[][2] = {
        {"q", "quit"},   {"h", "help"},      {"s", "sort"},   {"Enter", "detail"},
        {"k", "cancel"}, {"space", "pause"}, {"+/-", "speed"}};
    for (const auto& [key, what] : kKeys) {
      line.Add(" ").Add(key, Style::kStrong).Add(" ").Add(what, Style::kDim).Add(" ");
    }
    return line.Take();
  }

  const std::string url_;
  const TopState& state_;
  const View& view_;
  const Controls& controls_;
  const Size size_;
  const bool plain_;
  const size_t height_;
  std::vector<Line> lines_;
  size_t help_below_ = 0;  // lines of the help that are not seen
};

}  // namespace

std::vector<Line> Layout(const std::string& url, const TopState& state, const Controls& controls,
                         const Size& size) {
  return Frame(url, state, controls, size).Make();
}

size_t PageRows(const TopState& state, const Controls& controls, const Size& size) {
  return Frame("", state, controls, size).PageRows();
}

std::string PlainText(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) {
    for (const auto& [piece, style] : line.pieces) text += piece;
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

}  // namespace sluice::top
