#include "server/periodic.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"

namespace umpteenth::server {

Periodic::Periodic() : thread_([this](std::stop_token stop) { run(stop); }) {}

Periodic::~Periodic() {
  thread_.request_stop();
  thread_.join();
}

void Periodic::add(std::chrono::milliseconds interval, std::function<bool()> again) {
  std::lock_guard lock(mutex_);
  entries_.push_back({interval, std::chrono::steady_clock::now() + interval, std::move(again)});
  changed_.notify_all();
}

size_t Periodic::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

void Periodic::run(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    Instant next = std::chrono::steady_clock::now() + std::chrono::hours(1);
    for (const Entry& entry : entries_) next = std::min(next, entry.next);
    const size_t known = entries_.size();
    changed_.wait_until(lock, stop, next, [&] { return entries_.size() != known; });
    if (!stop.stop_requested()) run_due(lock);
  }
}

// Functions run without the lock, so that they may add others. Only this thread erases.
void Periodic::run_due(std::unique_lock<std::mutex>& lock) {
  const Instant now = std::chrono::steady_clock::now();
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->next > now) {
      ++entry;
      continue;
    }
    lock.unlock();
    bool again = false;
    try {
      again = entry->again();
    } catch (const std::exception& e) {  // one watcher's trouble must not end the others'
      log::error("periodic work failed, dropped", {{"error", e.what()}});
    }
    lock.lock();
    if (again) {
      entry->next = now + entry->interval;
      ++entry;
      continue;
    }
    std::list<Entry> finished;
    finished.splice(finished.end(), entries_, entry++);
    lock.unlock();
    finished.clear();
    lock.lock();
  }
}

}  // namespace umpteenth::server
