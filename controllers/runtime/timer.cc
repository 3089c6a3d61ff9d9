#include "controllers/runtime/timer.h"

#include <exception>

#include "base/log.h"

namespace umpteenth::controllers {

Timer::Timer(Clock& clock)
    : clock_(clock), thread_([this](const std::stop_token& stop) { run(stop); }) {}

Timer::Id Timer::at(Time when, std::function<void()> task) {
  std::lock_guard lock(mutex_);
  Id id = ++last_id_;
  bool earliest = tasks_.empty() || when < tasks_.begin()->first.first;
  tasks_.emplace(std::pair(when, id), std::move(task));
  times_.emplace(id, when);
  if (earliest) {
    sleep_.request_stop();
    changed_.notify_all();
  }
  return id;
}

void Timer::cancel(Id id) {
  std::lock_guard lock(mutex_);
  auto time = times_.find(id);
  if (time == times_.end()) return;
  tasks_.erase({time->second, id});
  times_.erase(time);
}

void Timer::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  {
    std::lock_guard lock(mutex_);
    sleep_.request_stop();
  }
  thread_.join();
}

void Timer::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (!changed_.wait(lock, stop, [this] { return !tasks_.empty(); })) return;
    // The lock was free meanwhile: stop() may have interrupted the last sleep, not the next one.
    if (stop.stop_requested()) return;
    auto first = tasks_.begin();
    Time when = first->first.first;
    if (when > clock_.now()) {
      sleep_ = std::stop_source();
      std::stop_token interrupted = sleep_.get_token();
      lock.unlock();
      clock_.sleep_until(when, interrupted);
      lock.lock();
      continue;
    }
    auto task = std::move(first->second);
    times_.erase(first->first.second);
    tasks_.erase(first);
    lock.unlock();
    try {
      task();
    } catch (const std::exception& e) {  // one task never ends the others
      log::error("timer task failed", {{"error", log::clip(e.what())}});
    }
    lock.lock();
  }
}

}  // namespace umpteenth::controllers
