#include "cli/top/columns.h"

#include <algorithm>

namespace sluice::top {

namespace {

using Row = RequestRow;

// While the prompt is computed how far that is.
std::string PromptText(const Row& row) {
  const std::string whole = CountText(row.prompt_tokens);
  return row.phase == "prefill" && row.processed_tokens
             ? CountText(row.processed_tokens) + "/" + whole
             : whole;
}

constexpr Column kColumns[] = {
    {"PHASE", 7, 7, true, 0, "queued, prefill (its prompt is computed) or decode",
     [](const Row& r) { return Ascii(r.phase); }, nullptr},
    {"REQUEST", 12, 40, true, 1, "its X-Request-Id", [](const Row& r) { return Ascii(r.name); },
     nullptr},
    {"MODEL", 12, 28, true, 13, "the model that answers",
     [](const Row& r) { return Ascii(r.model); }, nullptr},
    {"SLOT", 4, 4, false, 14, "its place in the running batch",
     [](const Row& r) { return CountText(r.slot); }, [](const Row& r) { return r.slot; }},
    {"PROMPT", 11, 11, false, 4, "tokens of its prompt; in prefill: computed / all",
     [](const Row& r) { return PromptText(r); }, [](const Row& r) { return r.prompt_tokens; }},
    {"CACHED", 6, 6, false, 5, "share of the prompt that an earlier request had left",
     [](const Row& r) { return PercentText(r.cached()); }, [](const Row& r) { return r.cached(); }},
    {"OUT", 6, 6, false, 3, "tokens generated",
     [](const Row& r) { return CountText(r.generated_tokens); },
     [](const Row& r) { return r.generated_tokens; }},
    {"MAX", 6, 6, false, 12, "tokens it may generate",
     [](const Row& r) { return CountText(r.max_tokens); },
     [](const Row& r) { return r.max_tokens; }},
    {"TOK/S", 7, 7, false, 2, "its speed in this phase",
     [](const Row& r) { return RateText(r.tok_s()); }, [](const Row& r) { return r.tok_s(); }},
    {"CEILING", 7, 7, false, 6, "what its decode reads, of the memory's measured ceiling",
     [](const Row& r) { return PercentText(r.ceiling); }, [](const Row& r) { return r.ceiling; }},
    {"QUEUE", 7, 7, false, 7, "time it waited", [](const Row& r) { return SecondsText(r.queue_s); },
     [](const Row& r) { return r.queue_s; }},
    {"PREFILL", 7, 7, false, 10, "time of its prompt",
     [](const Row& r) { return SecondsText(r.prefill_s); },
     [](const Row& r) { return r.prefill_s; }},
    {"PRE/S", 7, 7, false, 9, "tokens of its prompt per second",
     [](const Row& r) { return RateText(r.prefill_tok_s); },
     [](const Row& r) { return r.prefill_tok_s; }},
    {"DECODE", 7, 7, false, 11, "time of its tokens",
     [](const Row& r) { return SecondsText(r.decode_s); }, [](const Row& r) { return r.decode_s; }},
    {"TIME", 7, 7, false, 8, "all of it", [](const Row& r) { return SecondsText(r.whole_s()); },
     [](const Row& r) { return r.whole_s(); }},
    {"DONE", 6, 6, false, 15, "share of this phase, where it is known",
     [](const Row& r) { return PercentText(r.progress()); },
     [](const Row& r) { return r.progress(); }},
};

// A server that is not ours leaves columns empty for good.
bool Filled(const View& view, const Column& column) {
  if (view.kind == ServerKind::kSluice || column.rank < 5) return true;
  return std::any_of(view.requests.begin(), view.requests.end(), [&](const Row& row) {
    return column.number == nullptr ? !column.text(row).empty() : column.number(row).has_value();
  });
}

bool Before(const Column& column, const Row& a, const Row& b) {
  if (column.number == nullptr) return column.text(a) < column.text(b);
  // Rows without a number come last.
  return column.number(a).value_or(-1) > column.number(b).value_or(-1);
}

}  // namespace

std::span<const Column> AllColumns() { return kColumns; }

std::vector<PlacedColumn> PlaceColumns(const View& view, size_t width) {
  std::vector<size_t> by_rank;
  for (size_t i = 0; i < std::size(kColumns); ++i) {
    if (Filled(view, kColumns[i])) by_rank.push_back(i);
  }
  std::stable_sort(by_rank.begin(), by_rank.end(),
                   [](size_t a, size_t b) { return kColumns[a].rank < kColumns[b].rank; });
  std::vector<PlacedColumn> placed;
  size_t used = 1;
  for (size_t i : by_rank) {
    if (used + 1 + kColumns[i].width > width) break;
    used += 1 + kColumns[i].width;
    placed.push_back({i, kColumns[i].width});
  }
  std::sort(placed.begin(), placed.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  for (PlacedColumn& column : placed) {
    const Column& about = kColumns[column.index];
    const size_t more = std::min(about.widest - about.width, width - std::min(width, used));
    column.width += more;
    used += more;
  }
  return placed;
}

std::vector<const RequestRow*> SortedRows(const View& view, size_t column, bool reversed) {
  std::vector<const RequestRow*> rows;
  for (const RequestRow& row : view.requests) rows.push_back(&row);
  if (column < std::size(kColumns)) {
    std::stable_sort(rows.begin(), rows.end(), [&](const RequestRow* a, const RequestRow* b) {
      return Before(kColumns[column], *a, *b);
    });
  }
  if (reversed) std::reverse(rows.begin(), rows.end());
  return rows;
}

}  // namespace sluice::top
