// One thread for everything that looks again after a while: watches that time out or send
// bookmarks, followers of a timeline, housekeeping. Real time; the functions must not block long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace umpteenth::server {

class Periodic {
 public:
  Periodic();
  ~Periodic();  // waits for the function under way, then destroys the rest
  // Runs `again` on the thread every `interval` until it answers false; then it is destroyed there.
  void add(std::chrono::milliseconds interval, std::function<bool()> again);
  size_t size() const;

 private:
  using Instant = std::chrono::steady_clock::time_point;
  struct Entry {
    std::chrono::milliseconds interval;
    Instant next;
    std::function<bool()> again;
  };
  void run(std::stop_token stop);
  void run_due(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::list<Entry> entries_;
  std::jthread thread_;
};

}  // namespace umpteenth::server
