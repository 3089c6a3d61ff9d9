#include "controllers/runtime/fight.h"

#include <algorithm>
#include <functional>

namespace umpteenth::controllers {

Duration FightDetector::note(const store::Key& key, std::string_view plan) {
  std::lock_guard lock(mutex_);
  if (plan.empty()) {
    last_.erase(key);
    return Duration::zero();
  }
  Last& last = last_[key];
  size_t hash = std::hash<std::string_view>{}(plan);
  last.times = last.hash == hash ? last.times + 1 : 1;
  last.hash = hash;
  if (last.times < kIdenticalPlans) return Duration::zero();
  int doublings = std::min(last.times - kIdenticalPlans, 6);
  return std::min(Duration(10'000) * (1 << doublings), Duration(600'000));
}

void FightDetector::forget(const store::Key& key) {
  std::lock_guard lock(mutex_);
  last_.erase(key);
}

}  // namespace umpteenth::controllers
