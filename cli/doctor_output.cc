#include "cli/doctor_output.h"

#include <cstdio>

#include "cli/progress.h"
#include "cli/wrap.h"
#include "src/base/printable.h"

namespace sluice {
namespace {

constexpr size_t kMost = 4096;  // bytes of one text of a finding
constexpr size_t kNameColumns = 16, kWordColumns = 9;

struct Mark {
  const char* sign;
  const char* colour;
};

Mark MarkOf(Severity severity) {
  switch (severity) {
    case Severity::kProblem:
      return {"\u2717", "\033[1;31m"};
    case Severity::kWarning:
      return {"!", "\033[1;33m"};
    case Severity::kNote:
      return {"i", "\033[36m"};
    case Severity::kOk:
      break;
  }
  return {"\u2713", "\033[32m"};
}

std::string Padded(std::string text, size_t columns) {
  if (text.size() < columns) text.append(columns - text.size(), ' ');
  return text;
}

std::string CostText(const Cost& cost) {
  char number[48];
  if (cost.unit == CostUnit::kBytes) {
    std::snprintf(number, sizeof(number), "%s",
                  HumanBytes(static_cast<uint64_t>(cost.value)).c_str());
  } else {
    const bool small = cost.value < 10;
    std::snprintf(number, sizeof(number), small ? "%.1f %s" : "%.0f %s", cost.value,
                  CostUnitName(cost.unit));
  }
  return std::string("costs ") + number + " (" + (cost.measured ? "measured: " : "modelled: ") +
         cost.how + ")";
}

std::string FindingText(const Finding& f, const DoctorStyle& style) {
  const char* dim = style.terminal ? "\033[2m" : "";
  const char* plain = style.terminal ? "\033[0m" : "";
  const Mark mark = MarkOf(f.severity);
  std::string head = style.terminal ? std::string(mark.colour) + mark.sign + plain + " "
                                    : Padded(SeverityName(f.severity), kWordColumns);
  const size_t indent = (style.terminal ? 2 : kWordColumns) + kNameColumns;
  const std::string blanks(indent, ' ');
  std::string text = head + Padded(f.check, kNameColumns) +
                     Wrapped(Printable(f.found, kMost), indent, style.columns) + "\n";
  if (f.cost.unit != CostUnit::kNone) {
    text += blanks + dim + Wrapped(Printable(CostText(f.cost), kMost), indent, style.columns) +
            plain + "\n";
  }
  for (size_t i = 0; i < f.fix.size(); ++i) {
    text += blanks + (i == 0 ? "fix: " : " or: ") +
            Wrapped(Printable(f.fix[i], kMost), indent + 5, style.columns) + "\n";
  }
  return text;
}

std::string Counted(size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace

SeverityCounts CountSeverities(const std::vector<Finding>& findings) {
  SeverityCounts counts;
  for (const Finding& f : findings) {
    counts.problems += f.severity == Severity::kProblem;
    counts.warnings += f.severity == Severity::kWarning;
    counts.notes += f.severity == Severity::kNote;
  }
  return counts;
}

std::string FindingsText(const std::vector<Finding>& findings, const DoctorStyle& style) {
  std::string text, fine;
  for (const Finding& f : findings) {
    if (f.severity != Severity::kOk || style.all) {
      text += FindingText(f, style);
    } else {
      fine += (fine.empty() ? "" : ", ") + f.check;
    }
  }
  if (!fine.empty()) text += FindingText({"fine", Severity::kOk, fine, {}, {}}, style);
  const SeverityCounts n = CountSeverities(findings);
  return text + "\n" + Counted(n.problems, "problem") + ", " + Counted(n.warnings, "warning") +
         ", " + Counted(n.notes, "note") + "\n";
}

boost::json::array FindingsJson(const std::vector<Finding>& findings) {
  boost::json::array list;
  for (const Finding& f : findings) {
    boost::json::object o{{"check", f.check},
                          {"severity", SeverityName(f.severity)},
                          {"found", Printable(f.found, kMost)}};
    if (f.cost.unit != CostUnit::kNone) {
      o["cost"] = boost::json::object{{"value", f.cost.value},
                                      {"unit", CostUnitName(f.cost.unit)},
                                      {"basis", f.cost.measured ? "measured" : "modelled"},
                                      {"how", Printable(f.cost.how, kMost)}};
    } else {
      o["cost"] = nullptr;
    }
    boost::json::array fix;
    for (const std::string& line : f.fix) fix.emplace_back(Printable(line, kMost));
    o["fix"] = std::move(fix);
    list.push_back(std::move(o));
  }
  return list;
}

}  // namespace sluice
