#include "base/time_zone.h"

#include <date/date.h>
#include <date/tz.h>

#include <algorithm>
#include <stdexcept>

#include "base/error.h"

namespace umpteenth {
namespace {

// The text of an IANA name; anything else never reaches the library, which opens files by name.
bool looks_like_a_zone(std::string_view name) {
  if (name.empty() || name.size() > 64 || name == "Local" || name.front() == '/') return false;
  if (name.find("..") != std::string_view::npos) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
           c == '_' || c == '-' || c == '+';
  });
}

const date::time_zone* find_zone(std::string_view name) {
  if (!looks_like_a_zone(name)) return nullptr;
  try {
    return date::locate_zone(std::string(name));
  } catch (const std::runtime_error&) {  // how the library says "no such zone"
    return nullptr;
  }
}

const date::time_zone& get_zone(std::string_view name) {
  const date::time_zone* zone = find_zone(name);
  if (zone == nullptr)
    throw Error(Code::invalid, "\"" + std::string(name) + "\" is not an IANA time zone");
  return *zone;
}

}  // namespace

bool time_zone_exists(std::string_view name) { return find_zone(name) != nullptr; }

CivilTime to_civil(Time t, std::string_view zone) {
  const auto local = get_zone(zone).to_local(std::chrono::floor<std::chrono::seconds>(t));
  const auto day = date::floor<date::days>(local);
  const date::year_month_day ymd(day);
  const date::hh_mm_ss<std::chrono::seconds> clock(local - day);
  return {.year = static_cast<int>(ymd.year()),
          .month = static_cast<int>(static_cast<unsigned>(ymd.month())),
          .day = static_cast<int>(static_cast<unsigned>(ymd.day())),
          .hour = static_cast<int>(clock.hours().count()),
          .minute = static_cast<int>(clock.minutes().count()),
          .second = static_cast<int>(clock.seconds().count()),
          .weekday = static_cast<int>(date::weekday(day).c_encoding())};
}

Instant from_civil(const CivilTime& local, std::string_view zone) {
  const date::year_month_day ymd(date::year(local.year),
                                 date::month(static_cast<unsigned>(local.month)),
                                 date::day(static_cast<unsigned>(local.day)));
  if (!ymd.ok() || local.hour < 0 || local.hour > 23 || local.minute < 0 || local.minute > 59 ||
      local.second < 0 || local.second > 59)
    throw Error(Code::invalid, "not a date and time of day");
  const date::local_seconds when = date::local_days(ymd) + std::chrono::hours(local.hour) +
                                   std::chrono::minutes(local.minute) +
                                   std::chrono::seconds(local.second);
  const date::local_info info = get_zone(zone).get_info(when);
  switch (info.result) {
    case date::local_info::nonexistent:
      return {.time = info.first.end, .skipped = true};
    case date::local_info::ambiguous:
      return {.time = Time(when.time_since_epoch() - info.first.offset), .repeated = true};
    default:
      return {.time = Time(when.time_since_epoch() - info.first.offset)};
  }
}

}  // namespace umpteenth
