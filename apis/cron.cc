#include "apis/cron.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/time_zone.h"

namespace umpteenth::apis {
namespace {

struct Field {
  const char* name;
  int min, max;
  std::vector<std::string_view> names;  // names[i] = min + i
};

const std::array<Field, 5>& fields() {
  static const std::array<Field, 5> all{
      Field{"minute", 0, 59, {}},
      Field{"hour", 0, 23, {}},
      Field{"day of month", 1, 31, {}},
      Field{"month",
            1,
            12,
            {"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
      Field{"day of week", 0, 7, {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
  };
  return all;
}

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Code::invalid, "not a cron expression: " + why);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    at = text.find_first_not_of(separators, at);
    if (at == std::string_view::npos) return parts;
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
}

int number(const Field& field, std::string_view text) {
  for (size_t i = 0; i < field.names.size(); ++i) {
    const std::string_view name = field.names[i];
    if (text.size() == name.size() &&
        std::equal(text.begin(), text.end(), name.begin(),
                   [](char a, char b) { return (a >= 'a' && a <= 'z' ? a - 'a' + 'A' : a) == b; }))
      return field.min + static_cast<int>(i);
  }
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || text.front() == '-')
    refuse(std::string(field.name) + " " + json::quote(text) + " is not a number");
  if (n < field.min || n > field.max)
    refuse(std::string(field.name) + " " + std::to_string(n) + " is not between " +
           std::to_string(field.min) + " and " + std::to_string(field.max));
  return n;
}

// "*", "5", "1-5", "*/10", "10-30/5", "7/2" (from 7 to the end).
template <typename Bits>
void part(const Field& field, std::string_view text, Bits& bits) {
  const size_t slash = text.find('/');
  std::string_view range = text.substr(0, slash);
  int step = 1;
  if (slash != std::string_view::npos) {
    const std::string_view given = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), step);
    if (given.empty() || error != std::errc() || end != given.data() + given.size() || step < 1)
      refuse(std::string(field.name) + " step " + json::quote(given) + " is not a positive number");
  }
  int low = field.min, high = field.max;
  if (range != "*" && range != "?") {
    const size_t dash = range.find('-');
    if (range.empty() || dash == 0) refuse(std::string(field.name) + " " + json::quote(text));
    low = number(field, range.substr(0, dash));
    if (dash != std::string_view::npos) {
      if (dash + 1 == range.size()) refuse(std::string(field.name) + " " + json::quote(text));
      high = number(field, range.substr(dash + 1));
    } else if (slash == std::string_view::npos) {
      high = low;
    }
    if (low > high)
      refuse(std::string(field.name) + " range " + json::quote(range) + " runs backwards");
  }
  for (int n = low; n <= high; n += step) bits.set(static_cast<size_t>(n) % bits.size());
}

template <typename Bits>
void parse_field(const Field& field, std::string_view text, Bits& bits) {
  if (text.front() == ',' || text.back() == ',' || text.find(",,") != std::string_view::npos)
    refuse(std::string(field.name) + " " + json::quote(text) + " has an empty part");
  for (const std::string_view p : split(text, ",")) part(field, p, bits);
}

std::string_view descriptor(std::string_view text) {
  if (text == "@hourly") return "0 * * * *";
  if (text == "@daily" || text == "@midnight") return "0 0 * * *";
  if (text == "@weekly") return "0 0 * * 0";
  if (text == "@monthly") return "0 0 1 * *";
  if (text == "@yearly" || text == "@annually") return "0 0 1 1 *";
  refuse("unknown descriptor " + json::quote(text) +
         ", use @hourly, @daily, @weekly, @monthly or @yearly");
}

using namespace std::chrono;  // NOLINT(google-build-using-namespace): civil days below

int longest(int month) {
  return month == 2 ? 29 : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

}  // namespace

Cron::Cron(std::string_view expression) {
  if (expression.size() > 256) refuse("longer than 256 characters");
  if (expression.rfind("TZ=", 0) == 0 || expression.rfind("CRON_TZ=", 0) == 0)
    refuse("a TZ= prefix is not accepted, use schedule.timeZone");
  if (!expression.empty() && expression.front() == '@') expression = descriptor(expression);
  const std::vector<std::string_view> parts = split(expression, " \t");
  if (parts.size() != 5)
    refuse("expected 5 fields (minute hour day month weekday), found " +
           std::to_string(parts.size()));
  parse_field(fields()[0], parts[0], minutes_);
  parse_field(fields()[1], parts[1], hours_);
  parse_field(fields()[2], parts[2], days_);
  parse_field(fields()[3], parts[3], months_);
  std::bitset<8> weekdays;
  parse_field(fields()[4], parts[4], weekdays);
  for (size_t d = 0; d < 8; ++d)
    if (weekdays[d]) weekdays_.set(d % 7);  // 7 is Sunday too
  // As in cron: a field that begins with * does not restrict; of two restricted ones either fits.
  days_any_ = parts[2].front() == '*' || parts[2].front() == '?';
  weekdays_any_ = parts[4].front() == '*' || parts[4].front() == '?';
  if (days_any_ || !weekdays_any_) return;
  for (int month = 1; month <= 12; ++month)
    for (int day = 1; day <= longest(month); ++day)
      if (months_[static_cast<size_t>(month)] && days_[static_cast<size_t>(day)]) return;
  refuse("it never fires: no chosen month has such a day");
}

bool Cron::fires_on(int month, int day, int weekday) const {
  if (!months_[static_cast<size_t>(month)]) return false;
  const bool by_day = days_[static_cast<size_t>(day)];
  const bool by_weekday = weekdays_[static_cast<size_t>(weekday)];
  const bool either = !days_any_ && !weekdays_any_;
  return either ? by_day || by_weekday : by_day && by_weekday;
}

std::optional<Time> Cron::next(Time t, std::string_view zone) const {
  // from_civil never runs backwards and answers the earlier instant of a repeated time, so no
  // local time before t's own can be an instant after t: begin there, the first that is later wins.
  const CivilTime begin = to_civil(t, zone);
  const sys_days first = year_month_day{year(begin.year), month(static_cast<unsigned>(begin.month)),
                                        day(static_cast<unsigned>(begin.day))};
  for (sys_days at = first; at <= first + days(5 * 366); at += days(1)) {
    const year_month_day date(at);
    const int m = static_cast<int>(static_cast<unsigned>(date.month()));
    const int d = static_cast<int>(static_cast<unsigned>(date.day()));
    const int w = static_cast<int>(weekday(at).c_encoding());
    if (!fires_on(m, d, w)) continue;
    for (int hour = at == first ? begin.hour : 0; hour < 24; ++hour) {
      if (!hours_[static_cast<size_t>(hour)]) continue;
      for (int minute = 0; minute < 60; ++minute) {
        if (!minutes_[static_cast<size_t>(minute)]) continue;
        const Time instant = from_civil({int(date.year()), m, d, hour, minute, 0, w}, zone).time;
        if (instant > t) return instant;
      }
    }
  }
  return std::nullopt;
}

}  // namespace umpteenth::apis
