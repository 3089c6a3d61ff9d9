// What a front's connections share. Belongs to the front's io thread but for the inbox.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "broker/front.h"
#include "broker/recorder.h"

namespace umpteenth::broker {

using Steady = std::chrono::steady_clock;

class Session;
struct Core;

// Work for the io thread, from others. Outlives the front where a late answer holds it.
class Inbox {
 public:
  Inbox();
  int wake_fd() const { return wake_.get(); }
  void post(std::function<void(Core&)> work);
  std::vector<std::function<void(Core&)>> take();

 private:
  Fd wake_;
  std::mutex mutex_;
  std::vector<std::function<void(Core&)>> work_;
};

// A run that has used the proxy; goes with the run's token.
struct RunUse {
  std::shared_ptr<runs::LiveRun> run;
  size_t open = 0;
  std::unordered_set<uint64_t> sessions;
  std::unordered_set<std::string> hosts;  // on the timeline already
  size_t refusals = 0;
};

struct Listener {
  Fd socket;
  std::string endpoint;  // "" = the connection says
  bool proxy_v2 = false;
};

struct Core {
  Core(runs::Registry& r, http::Server& b, FrontOptions o);

  // wanted: EPOLLIN, EPOLLOUT; have: what epoll was told last. A socket of which nothing is wanted
  // leaves epoll, unless its end is to be heard of.
  static constexpr uint32_t kAbsent = ~0U;
  bool watch(int fd, uint64_t id, uint32_t wanted, uint32_t& have);

  // Null where the run has its share of connections already.
  RunUse* enter(const std::shared_ptr<runs::LiveRun>& run, uint64_t session);
  void leave(const std::string& run_uid, uint64_t session);
  void record_use(const std::string& run_uid, const std::string& host, int port);
  void record_refusal(const std::string& run_uid, const std::string& host, int port,
                      const std::string& reason);

  runs::Registry& registry;
  http::Server& broker;
  FrontOptions options;
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();
  Fd epoll;
  uint64_t next_id = 1;
  std::unordered_map<uint64_t, Listener> listeners;
  std::unordered_map<uint64_t, std::unique_ptr<Session>> sessions;
  std::unordered_map<std::string, RunUse> runs;
  std::unordered_map<std::string, size_t> per_endpoint;
  std::array<char, 64U << 10> scratch;
  std::atomic<size_t> open{0}, runs_known{0};
  std::atomic<uint64_t> accepted{0}, dropped{0};
  Recorder recorder;
  ResolverPool resolver;
};

}  // namespace umpteenth::broker
