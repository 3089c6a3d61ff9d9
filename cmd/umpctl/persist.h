// Following something for longer than a connection lasts.
#pragma once

#include <chrono>
#include <iostream>
#include <thread>

#include "base/error.h"

namespace umpteenth::umpctl {

struct Patience {
  std::chrono::milliseconds pause{1'000};
  std::chrono::milliseconds most{
      120'000};  // a script must not wait for ever for an umpd that is gone
};

// What f answers. While the server cannot be reached f is called again, and stderr says so once;
// any other error is thrown on.
template <typename F>
auto persistently(const F& f, const Patience& patience = {}) {
  using Steady = std::chrono::steady_clock;
  const auto begin = Steady::now();
  for (bool said = false;; said = true) {
    try {
      return f();
    } catch (const Error& e) {
      if (e.code() != Code::unavailable || Steady::now() - begin >= patience.most) throw;
      if (!said) std::cerr << "connection lost, trying again: " << e.message() << "\n";
    }
    std::this_thread::sleep_for(patience.pause);
  }
}

}  // namespace umpteenth::umpctl
