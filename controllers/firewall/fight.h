// Somebody undoes what is repaired, and the same repair comes again and again. Unlike the
// controllers' FightDetector it is not ended by a look that finds all well: there is one after each
// repair.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"

namespace umpteenth::controllers::firewall {

class Fight {
 public:
  static constexpr int kIdenticalRepairs = 10;
  static constexpr Duration kPeace{600'000};  // without a repair this long it is over
  static constexpr Duration kFirstPause{10'000}, kLongestPause{600'000};

  // A repair is about to be made. False while it is to be left undone; from the tenth identical one
  // in a row on a pause follows each, doubled every time.
  bool may_repair(std::string_view repair, Time now);
  Time next() const { return next_; }  // when it may be tried again
  int times() const { return times_; }

 private:
  std::string repair_;
  int times_ = 0;
  Time last_{}, next_{};
  Duration pause_{};
};

}  // namespace umpteenth::controllers::firewall
