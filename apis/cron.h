// Five-field cron and descriptors (@hourly, @daily, @weekly, @monthly, @yearly). No seconds, no
// @every, no TZ= prefix. A local time that a DST jump skips fires just after the jump; one that
// occurs twice fires once. Pure.
#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace umpteenth::apis {

class Cron {
 public:
  // Error(invalid) says which field and why, also where it never fires ("0 0 30 2 *").
  explicit Cron(std::string_view expression);
  // The first occurrence strictly after t, in that zone; within five years or nullopt.
  std::optional<Time> next(Time t, std::string_view zone) const;

 private:
  bool fires_on(int month, int day, int weekday) const;

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;
  std::bitset<13> months_;
  std::bitset<7> weekdays_;
  bool days_any_ = true, weekdays_any_ = true;
};

}  // namespace umpteenth::apis
