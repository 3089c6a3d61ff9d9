#include "controllers/run/process_watch.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <vector>

#include "base/error.h"

namespace umpteenth::controllers::run {

ProcessWatch::ProcessWatch() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw errno_error(Code::internal, "make an eventfd");
}

void ProcessWatch::add(const std::string& key, Process process, std::function<void()> ended) {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  watched_[key] = {std::move(process), std::move(ended)};
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  eventfd_write(wake_.get(), 1);
}

void ProcessWatch::remove(const std::string& key) {
  std::lock_guard lock(mutex_);
  if (watched_.erase(key) > 0) eventfd_write(wake_.get(), 1);
}

void ProcessWatch::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    watched_.clear();
    eventfd_write(wake_.get(), 1);
  }
  if (thread_.joinable()) thread_.join();
}

void ProcessWatch::run() {
  while (true) {
    std::map<std::string, Process> now;  // the descriptors stay open while they are waited for
    {
      std::lock_guard lock(mutex_);
      if (stopped_) return;
      for (const auto& [key, watched] : watched_) now[key] = watched.process;
    }
    for (const std::string& key : wait_for_any(now)) {
      std::function<void()> ended;
      {
        std::lock_guard lock(mutex_);
        auto found = watched_.find(key);
        if (found == watched_.end() || found->second.process.pidfd != now[key].pidfd) continue;
        ended = std::move(found->second.ended);
        watched_.erase(found);
      }
      ended();
    }
  }
}

// Those that have ended; nothing when the set has changed.
std::vector<std::string> ProcessWatch::wait_for_any(const std::map<std::string, Process>& of) {
  std::vector<pollfd> waiting{{wake_.get(), POLLIN, 0}};
  for (const auto& [key, process] : of) waiting.push_back({process.pidfd, POLLIN, 0});
  poll(waiting.data(), waiting.size(), -1);
  eventfd_t ignored = 0;
  eventfd_read(wake_.get(), &ignored);
  std::vector<std::string> ended;
  auto seen = waiting.begin();
  for (const auto& [key, process] : of)
    if ((++seen)->revents != 0) ended.push_back(key);
  return ended;
}

}  // namespace umpteenth::controllers::run
