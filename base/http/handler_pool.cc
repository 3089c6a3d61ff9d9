#include "base/http/handler_pool.h"

#include <utility>

namespace umpteenth::http {

void HandlerPool::start() {
  for (size_t i = 0; i < threads_; ++i) running_.emplace_back([this] { work(); });
}

bool HandlerPool::submit(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (finishing_ || jobs_.size() >= idle_ + max_waiting_) return false;
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

void HandlerPool::finish() {
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : running_) thread.join();
  running_.clear();
}

void HandlerPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [&] { return finishing_ || !jobs_.empty(); });
    --idle_;
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace umpteenth::http
