// Short tasks at given times of a Clock, on one thread of its own. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace umpteenth::controllers {

class Timer {
 public:
  using Id = uint64_t;

  explicit Timer(Clock& clock);
  ~Timer() { stop(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // The task must be short: the others wait for it. What it throws is logged.
  Id at(Time when, std::function<void()> task);
  void cancel(Id id);  // a task that already began may still be running
  void stop();         // ends the thread; no task runs afterwards

 private:
  void run(const std::stop_token& stop);

  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::pair<Time, Id>, std::function<void()>> tasks_;
  std::map<Id, Time> times_;
  std::stop_source sleep_;
  Id last_id_ = 0;
  std::jthread thread_;
};

}  // namespace umpteenth::controllers
