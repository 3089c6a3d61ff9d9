// The last events in order, and a thread that hands them to subscriptions. A publisher waits while
// the slowest subscription is a whole history behind, so that none ever misses an event.
#pragma once

#include <memory>
#include <vector>

#include "store/store.h"

namespace umpteenth::store {

class WatchHub {
 public:
  // history: events kept for subscriptions that resume.
  explicit WatchHub(size_t history);
  ~WatchHub();
  WatchHub(const WatchHub&) = delete;
  WatchHub& operator=(const WatchHub&) = delete;

  // Events up to `revision` happened before this process: a watch cannot resume there.
  void start_at(uint64_t revision);
  void publish(std::vector<Event> events);
  // Store::watch; current: the newest revision there is.
  std::unique_ptr<Subscription> watch(std::string kind, uint64_t from, uint64_t current,
                                      std::function<void(const Event&)> sink);
  uint64_t oldest() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with subscriptions, which may outlive the hub
};

}  // namespace umpteenth::store
