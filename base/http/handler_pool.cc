#include "base/http/handler_pool.h"

#include <system_error>
#include <utility>

namespace umpteenth::http {

void HandlerPool::start() {
  const std::lock_guard lock(mutex_);
  started_ = true;
  add_threads();
}

void HandlerPool::add_threads() {
  while (started_ && jobs_.size() > idle_ + starting_ && running_.size() < threads_) {
    try {
      running_.emplace_back([this] { work(); });
      ++starting_;
    } catch (const std::system_error&) {  // no more threads: those there are take the jobs in turn
      if (running_.empty()) throw;
      return;
    }
  }
}

bool HandlerPool::submit(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    const size_t at_hand = idle_ + starting_ + threads_ - running_.size();
    if (finishing_ || jobs_.size() >= at_hand + max_waiting_) return false;
    jobs_.push_back(std::move(job));
    add_threads();
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
  --starting_;
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
