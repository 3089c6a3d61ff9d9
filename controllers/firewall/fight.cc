#include "controllers/firewall/fight.h"

#include <algorithm>

namespace umpteenth::controllers::firewall {

bool Fight::may_repair(std::string_view repair, Time now) {
  if (repair != repair_ || now - last_ > kPeace + pause_) {
    repair_ = repair;
    times_ = 0;
    next_ = {};
    pause_ = {};
  }
  if (now < next_) return false;
  last_ = now;
  if (++times_ < kIdenticalRepairs) return true;
  pause_ = pause_ == Duration{} ? kFirstPause : std::min(pause_ * 2, kLongestPause);
  next_ = now + pause_;
  return true;
}

}  // namespace umpteenth::controllers::firewall
