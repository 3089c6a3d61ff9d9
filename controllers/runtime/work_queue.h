// The queue between watches and workers. Holds keys only: however many events an object had, it is
// worked on once, never by two workers at a time, and again if an event came meanwhile.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stop_token>

#include "base/clock.h"
#include "controllers/runtime/timer.h"
#include "store/store.h"

namespace umpteenth::controllers {

inline constexpr Duration kBackoffFirst{5};
inline constexpr Duration kBackoffMost{1'000'000};

// 5 ms doubled for each failure in a row, at most 1000 s. spread in [0, 1): the jitter takes away
// up to half, never below 5 ms. Pure.
Duration backoff(int failures, double spread);

class WorkQueue {
 public:
  WorkQueue(Clock& clock, Timer& timer, unsigned seed = 1);
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void add(const store::Key& key);
  void add_after(const store::Key& key, Duration delay);  // of several delays the earliest counts
  void retry(const store::Key& key);                      // after the backoff for one more failure
  void forget(const store::Key& key);                     // the failures in a row end here

  // The next key, now being processed; nullopt once stop was requested.
  std::optional<store::Key> get(std::stop_token stop);
  void done(const store::Key& key);

  int failures(const store::Key& key) const;
  size_t ready() const;    // keys that a worker could take now
  size_t delayed() const;  // keys whose time has not come

 private:
  void add_locked(const store::Key& key);

  Clock& clock_;
  Timer& timer_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<store::Key> queue_;
  std::set<store::Key> dirty_, processing_;
  std::map<store::Key, int> failures_;
  std::map<store::Key, std::pair<Time, Timer::Id>> delayed_;
  std::minstd_rand random_;
};

}  // namespace umpteenth::controllers
