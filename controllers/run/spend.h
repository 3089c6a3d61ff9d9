// What a workspace's runs cost on each UTC day, kept beside the runs so that removing a run's
// record does not give money back. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "store/store.h"

namespace umpteenth::controllers::run {

class Spend {
 public:
  Spend(store::Store& store, Clock& clock) : store_(store), clock_(clock) {}
  int64_t today(const std::string& ns) const;  // micro-USD of the runs that have ended
  void add(const std::string& ns, int64_t micro_usd);

 private:
  std::string key(const std::string& ns) const;
  store::Store& store_;
  Clock& clock_;
  mutable std::mutex mutex_;
};

// "" while spending goes on, else why the run must not start.
std::string spend_problem(int64_t spent_micro_usd, double limit_usd);
std::string dollars(double usd);  // $5.00

}  // namespace umpteenth::controllers::run
