// Up to a fixed number of threads, each made when it is first needed, behind a bounded queue: where
// a server's handlers run.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace umpteenth::http {

class HandlerPool {
 public:
  HandlerPool(size_t threads, size_t max_waiting) : threads_(threads), max_waiting_(max_waiting) {}
  ~HandlerPool() { finish(); }
  void start();
  // False when the queue is full. Jobs must not throw.
  bool submit(std::function<void()> job);
  // Runs what is queued, then ends the threads.
  void finish();

 private:
  void work();
  void add_threads();  // with the mutex held

  const size_t threads_, max_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  size_t idle_ = 0;
  size_t starting_ = 0;  // made, and not yet at its first wait
  bool started_ = false;
  bool finishing_ = false;
  std::vector<std::thread> running_;
};

}  // namespace umpteenth::http
