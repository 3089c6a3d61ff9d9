// Wall time and waiting, as a seam, so that controllers and schedules are tested without sleeping.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>

namespace umpteenth {

using Time = std::chrono::sys_time<std::chrono::milliseconds>;
using Duration = std::chrono::milliseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
  // Sleeps until t on this clock; false when stop was requested first.
  virtual bool sleep_until(Time t, std::stop_token stop) = 0;
  bool sleep_for(Duration d, std::stop_token stop) { return sleep_until(now() + d, stop); }
};

Clock& system_clock();

// RFC 3339 in UTC, whole seconds: 2026-11-30T08:00:00Z. parse accepts fractions and offsets,
// throws Error(bad_request) otherwise.
std::string format_time(Time t);
std::string format_time_ms(Time t);  // with milliseconds
Time parse_time(std::string_view text);

// 5s, 3m, 2h, 4d as kubectl prints an age.
std::string format_age(Duration d);

// For tests: time moves only by advance(), which wakes those sleepers whose time has come.
class FakeClock : public Clock {
 public:
  explicit FakeClock(Time start) : now_(start) {}
  Time now() const override;
  bool sleep_until(Time t, std::stop_token stop) override;
  void advance(Duration d);
  size_t sleepers() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  Time now_;
  size_t sleepers_ = 0;
};

}  // namespace umpteenth
