// A stop token that is requested when its parent is, or after a time on a clock.
#pragma once

#include <functional>
#include <stop_token>
#include <thread>

#include "base/clock.h"

namespace umpteenth::agent {

class TimeLimit {
 public:
  TimeLimit(Clock& clock, Duration limit, std::stop_token parent)
      : forward_(std::move(parent), [this] { stop_.request_stop(); }),
        timer_([this, &clock, limit](std::stop_token done) {
          if (clock.sleep_for(limit, done)) stop_.request_stop();
        }) {}

  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> forward_;
  std::jthread timer_;  // ends first: it uses what is above
};

}  // namespace umpteenth::agent
