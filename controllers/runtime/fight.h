// Notices a fight: somebody undoes what a controller does, and the same plan comes again and again.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "store/store.h"

namespace umpteenth::controllers {

class FightDetector {
 public:
  static constexpr int kIdenticalPlans = 10;

  // plan: the actions as text, "" = nothing to do, which ends a fight. How long to wait before
  // carrying the plan out: zero, or from the tenth identical plan in a row 10 s, doubled each time
  // up to 10 min.
  Duration note(const store::Key& key, std::string_view plan);
  void forget(const store::Key& key);

 private:
  struct Last {
    size_t hash = 0;
    int times = 0;
  };
  std::mutex mutex_;
  std::map<store::Key, Last> last_;
};

}  // namespace umpteenth::controllers
