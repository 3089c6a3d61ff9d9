// IANA time zones, by Debian's date library (reads /usr/share/zoneinfo).
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace umpteenth {

// Minutes-resolution civil time.
struct CivilTime {
  int year, month, day, hour, minute, second;
  int weekday;  // 0 = Sunday
  bool operator==(const CivilTime&) const = default;
};

bool time_zone_exists(std::string_view name);  // false for "" and "Local"
CivilTime to_civil(Time t, std::string_view zone);

// Where the local time exists twice the earlier instant; where it is skipped the first instant
// after the jump, and `skipped` is set.
struct Instant {
  Time time;
  bool skipped = false;
  bool repeated = false;
};
Instant from_civil(const CivilTime& local, std::string_view zone);

}  // namespace umpteenth
