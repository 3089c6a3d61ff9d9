#include "broker/front_core.h"

#include <sys/eventfd.h>

#include "base/error.h"
#include "broker/session.h"
#include "runs/timeline.h"

namespace umpteenth::broker {
namespace {

// What the timeline takes of one run, and one more for the note that it takes no more.
constexpr size_t kMaxRemembered = runs::kMaxBrokerCalls + 1;

ResolverPool::Options resolver_options(const FrontOptions& options) {
  ResolverPool::Options pool;
  pool.resolve = options.resolve;
  pool.classify = options.classify;
  if (!pool.classify)
    pool.classify = [topology = options.topology](const net::Address& address) {
      return net::classify(address, topology ? topology() : net::Topology{});
    };
  return pool;
}

}  // namespace

Inbox::Inbox() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw errno_error(Code::internal, "make an eventfd");
}

void Inbox::post(std::function<void(Core&)> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  eventfd_write(wake_.get(), 1);
}

std::vector<std::function<void(Core&)>> Inbox::take() {
  eventfd_t ignored = 0;
  eventfd_read(wake_.get(), &ignored);
  const std::lock_guard lock(mutex_);
  return std::exchange(work_, {});
}

Core::Core(runs::Registry& r, http::Server& b, FrontOptions o)
    : registry(r),
      broker(b),
      options(std::move(o)),
      epoll(epoll_create1(EPOLL_CLOEXEC)),
      resolver(resolver_options(options)) {
  if (!epoll) throw errno_error(Code::internal, "make an epoll");
}

bool Core::watch(int fd, uint64_t id, uint32_t wanted, uint32_t& have) {
  const uint32_t now = wanted == 0 ? kAbsent : wanted;
  if (now == have) return true;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = id;
  const int how =
      have == kAbsent ? EPOLL_CTL_ADD : (now == kAbsent ? EPOLL_CTL_DEL : EPOLL_CTL_MOD);
  have = now;
  return epoll_ctl(epoll.get(), how, fd, &event) == 0;
}

RunUse* Core::enter(const std::shared_ptr<runs::LiveRun>& run, uint64_t session) {
  RunUse& use = runs[run->info().uid];
  use.run = run;
  if (use.open >= options.tunnels_per_run) return nullptr;
  ++use.open;
  use.sessions.insert(session);
  return &use;
}

void Core::leave(const std::string& run_uid, uint64_t session) {
  const auto use = runs.find(run_uid);
  if (use != runs.end() && use->second.sessions.erase(session) > 0) --use->second.open;
}

void Core::record_use(const std::string& run_uid, const std::string& host, int port) {
  RunUse& use = runs.at(run_uid);
  if (use.hosts.size() >= kMaxRemembered || !use.hosts.insert(host).second) return;
  recorder.record(use.run, "proxy " + host,
                  json::Value::object({{"host", host}, {"port", port}, {"allowed", true}}));
}

void Core::record_refusal(const std::string& run_uid, const std::string& host, int port,
                          const std::string& reason) {
  RunUse& use = runs.at(run_uid);
  if (use.refusals >= kMaxRemembered) return;
  ++use.refusals;
  recorder.record(
      use.run, "proxy " + host,
      json::Value::object({{"host", host}, {"port", port}, {"allowed", false}, {"error", reason}}));
}

}  // namespace umpteenth::broker
