// strftime in the C locale, whatever the process has set.
#include <cstdio>
#include <ctime>

#include "src/text/jinja/builtins.h"

namespace sluice::jinja {

namespace {

constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};
constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};

std::string Number(int value, int width, char fill = '0') {
  std::string text = std::to_string(value < 0 ? -value : value);
  while (text.size() < static_cast<size_t>(width)) text.insert(text.begin(), fill);
  return value < 0 ? "-" + text : text;
}

// Of the year and week that ISO 8601 counts.
std::pair<int, int> IsoWeek(const std::tm& t) {
  const auto weeks_in = [](int year) {
    const auto dec31 = [](int y) { return (y + y / 4 - y / 100 + y / 400) % 7; };
    return dec31(year) == 4 || dec31(year - 1) == 3 ? 53 : 52;
  };
  const int weekday = t.tm_wday == 0 ? 7 : t.tm_wday;
  const int year = t.tm_year + 1900;
  const int week = (t.tm_yday + 1 - weekday + 10) / 7;
  if (week < 1) return {year - 1, weeks_in(year - 1)};
  if (week > weeks_in(year)) return {year + 1, 1};
  return {year, week};
}

std::string Field(const std::tm& t, char letter, bool no_padding) {
  const auto padded = [&](int value, int width, char fill = '0') {
    return Number(value, no_padding ? 1 : width, fill);
  };
  const int hour12 = t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12;
  const std::string year = Number(t.tm_year + 1900, 1);
  switch (letter) {
    case 'a':
      return std::string(kDays[t.tm_wday % 7]).substr(0, 3);
    case 'A':
      return kDays[t.tm_wday % 7];
    case 'b':
    case 'h':
      return std::string(kMonths[t.tm_mon % 12]).substr(0, 3);
    case 'B':
      return kMonths[t.tm_mon % 12];
    case 'c':
      return Field(t, 'a', false) + " " + Field(t, 'b', false) + " " + Number(t.tm_mday, 2, ' ') +
             " " + Field(t, 'T', false) + " " + year;
    case 'C':
      return padded((t.tm_year + 1900) / 100, 2);
    case 'd':
      return padded(t.tm_mday, 2);
    case 'D':
    case 'x':
      return Number(t.tm_mon + 1, 2) + "/" + Number(t.tm_mday, 2) + "/" +
             Number(t.tm_year % 100, 2);
    case 'e':
      return padded(t.tm_mday, 2, ' ');
    case 'F':
      return year + "-" + Number(t.tm_mon + 1, 2) + "-" + Number(t.tm_mday, 2);
    case 'f':
      return "000000";
    case 'g':
      return padded(IsoWeek(t).first % 100, 2);
    case 'G':
      return Number(IsoWeek(t).first, 1);
    case 'H':
      return padded(t.tm_hour, 2);
    case 'I':
      return padded(hour12, 2);
    case 'j':
      return padded(t.tm_yday + 1, 3);
    case 'k':
      return padded(t.tm_hour, 2, ' ');
    case 'l':
      return padded(hour12, 2, ' ');
    case 'm':
      return padded(t.tm_mon + 1, 2);
    case 'M':
      return padded(t.tm_min, 2);
    case 'n':
      return "\n";
    case 'p':
      return t.tm_hour < 12 ? "AM" : "PM";
    case 'P':
      return t.tm_hour < 12 ? "am" : "pm";
    case 'r':
      return Number(hour12, 2) + ":" + Number(t.tm_min, 2) + ":" + Number(t.tm_sec, 2) + " " +
             Field(t, 'p', false);
    case 'R':
      return Number(t.tm_hour, 2) + ":" + Number(t.tm_min, 2);
    case 's': {
      std::tm copy = t;
      return std::to_string(std::mktime(&copy));
    }
    case 'S':
      return padded(t.tm_sec, 2);
    case 't':
      return "\t";
    case 'T':
    case 'X':
      return Field(t, 'R', false) + ":" + Number(t.tm_sec, 2);
    case 'u':
      return Number(t.tm_wday == 0 ? 7 : t.tm_wday, 1);
    case 'U':
      return padded((t.tm_yday + 7 - t.tm_wday) / 7, 2);
    case 'V':
      return padded(IsoWeek(t).second, 2);
    case 'w':
      return Number(t.tm_wday, 1);
    case 'W':
      return padded((t.tm_yday + 7 - (t.tm_wday + 6) % 7) / 7, 2);
    case 'y':
      return padded(t.tm_year % 100, 2);
    case 'Y':
      return year;
    case 'z':
    case 'Z':
      return {};  // Python's now() knows no zone
    case '%':
      return "%";
    default:
      return std::string("%") + (no_padding ? "-" : "") + letter;
  }
}

}  // namespace

std::string FormatTime(const std::tm& time, std::string_view format) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const bool no_padding = format[i + 1] == '-' && i + 2 < format.size();
    i += no_padding ? 2 : 1;
    out += Field(time, format[i], no_padding);
  }
  return out;
}

}  // namespace sluice::jinja
