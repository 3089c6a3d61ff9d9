#include "controllers/runtime/work_queue.h"

#include <algorithm>

namespace umpteenth::controllers {

Duration backoff(int failures, double spread) {
  auto full = kBackoffFirst.count() << std::clamp(failures - 1, 0, 30);
  full = std::min<int64_t>(full, kBackoffMost.count());
  auto with_jitter = static_cast<int64_t>(static_cast<double>(full) * (1.0 - spread / 2));
  return Duration(std::max<int64_t>(with_jitter, kBackoffFirst.count()));
}

WorkQueue::WorkQueue(Clock& clock, Timer& timer, unsigned seed)
    : clock_(clock), timer_(timer), random_(seed) {}

void WorkQueue::add(const store::Key& key) {
  std::lock_guard lock(mutex_);
  add_locked(key);
}

void WorkQueue::add_locked(const store::Key& key) {
  if (!dirty_.insert(key).second) return;
  if (processing_.contains(key)) return;  // done() puts it back
  queue_.push_back(key);
  changed_.notify_one();
}

void WorkQueue::add_after(const store::Key& key, Duration delay) {
  if (delay <= Duration::zero()) return add(key);
  std::lock_guard lock(mutex_);
  Time when = clock_.now() + delay;
  if (auto waiting = delayed_.find(key); waiting != delayed_.end()) {
    if (waiting->second.first <= when) return;
    timer_.cancel(waiting->second.second);
  }
  auto id = timer_.at(when, [this, key, when] {
    std::lock_guard inner(mutex_);
    auto waiting = delayed_.find(key);
    if (waiting == delayed_.end() || waiting->second.first != when) return;
    delayed_.erase(waiting);
    add_locked(key);
  });
  delayed_[key] = {when, id};
}

void WorkQueue::retry(const store::Key& key) {
  Duration delay;
  {
    std::lock_guard lock(mutex_);
    double spread = std::uniform_real_distribution<double>(0.0, 1.0)(random_);
    delay = backoff(++failures_[key], spread);
  }
  add_after(key, delay);
}

void WorkQueue::forget(const store::Key& key) {
  std::lock_guard lock(mutex_);
  failures_.erase(key);
}

std::optional<store::Key> WorkQueue::get(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop, [this] { return !queue_.empty(); })) return std::nullopt;
  if (stop.stop_requested()) return std::nullopt;
  store::Key key = std::move(queue_.front());
  queue_.pop_front();
  dirty_.erase(key);
  processing_.insert(key);
  return key;
}

void WorkQueue::done(const store::Key& key) {
  std::lock_guard lock(mutex_);
  processing_.erase(key);
  if (!dirty_.contains(key)) return;
  queue_.push_back(key);
  changed_.notify_one();
}

int WorkQueue::failures(const store::Key& key) const {
  std::lock_guard lock(mutex_);
  auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

size_t WorkQueue::ready() const {
  std::lock_guard lock(mutex_);
  return queue_.size();
}

size_t WorkQueue::delayed() const {
  std::lock_guard lock(mutex_);
  return delayed_.size();
}

}  // namespace umpteenth::controllers
