// Shared by the controllers' tests.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/clock.h"

namespace umpteenth::controllers {

// Polls until the condition holds; false when it did not within the deadline.
inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds within = std::chrono::seconds(10)) {
  auto deadline = std::chrono::steady_clock::now() + within;
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return condition();
}

inline Time at(const char* text) { return parse_time(text); }

}  // namespace umpteenth::controllers
