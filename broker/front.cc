#include "broker/front.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/http/listener.h"
#include "base/log.h"
#include "broker/front_core.h"
#include "broker/session.h"

namespace umpteenth::broker {
namespace {

constexpr int kAcceptsAtOnce = 64;
constexpr std::chrono::milliseconds kTick{250};  // how exactly deadlines are kept
constexpr std::chrono::milliseconds kExhaustedPause{20};

}  // namespace

struct Front::Impl {
  Impl(runs::Registry& registry, http::Server& broker, FrontOptions options)
      : core(registry, broker, std::move(options)) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = 0;
    if (epoll_ctl(core.epoll.get(), EPOLL_CTL_ADD, core.inbox->wake_fd(), &event) != 0)
      throw errno_error(Code::internal, "watch an eventfd");
    registry.on_remove([inbox = std::weak_ptr(core.inbox)](const std::string& run_uid) {
      if (const auto to = inbox.lock()) to->post([run_uid](Core& at) { revoke(at, run_uid); });
    });
  }

  static void revoke(Core& core, const std::string& run_uid) {
    const auto use = core.runs.find(run_uid);
    if (use == core.runs.end()) return;
    const auto sessions = std::exchange(use->second.sessions, {});
    for (const uint64_t id : sessions) core.sessions.erase(id);
    core.runs.erase(run_uid);
  }

  static uint64_t add_listener(Core& core, Listener listener) {
    const uint64_t id = core.next_id++;
    Listener& kept = core.listeners[id] = std::move(listener);
    uint32_t have = Core::kAbsent;
    if (!core.watch(kept.socket.get(), id << 1, EPOLLIN, have))
      log::error("cannot watch a listener", {{"endpoint", kept.endpoint}});
    return id;
  }

  static void drop_listener(Core& core, const std::string& endpoint) {
    for (auto it = core.listeners.begin(); it != core.listeners.end();) {
      if (it->second.endpoint != endpoint) {
        ++it;
        continue;
      }
      std::erase_if(core.sessions,
                    [&](const auto& s) { return s.second->listener() == it->first; });
      it = core.listeners.erase(it);
    }
    core.broker.cut(endpoint);
  }

  void accept_some(uint64_t id) {
    Listener& listener = core.listeners.at(id);
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
      auto accepted = http::accept_from(listener.socket.get(), exhausted);
      if (!accepted) return;
      ++core.accepted;
      if (core.sessions.size() >= core.options.connections) {
        ++core.dropped;
        continue;
      }
      Session::Origin origin{id, std::move(accepted->peer), std::move(accepted->local),
                             listener.proxy_v2};
      if (!listener.endpoint.empty())
        origin.peer.address = origin.local.address = listener.endpoint;
      const uint64_t session = core.next_id++;
      auto made =
          std::make_unique<Session>(core, session, std::move(accepted->socket), std::move(origin));
      if (made->begin()) core.sessions.emplace(session, std::move(made));
    }
  }

  void on_event(const epoll_event& event) {
    const uint64_t id = event.data.u64 >> 1;
    if (core.listeners.contains(id)) return accept_some(id);
    const auto found = core.sessions.find(id);
    if (found == core.sessions.end()) return;
    Session& session = *found->second;
    const bool goes_on = (event.data.u64 & 1) != 0 ? session.on_server(event.events)
                                                   : session.on_client(event.events);
    if (!goes_on) core.sessions.erase(id);
  }

  void tick() {
    const auto now = Steady::now();
    if (now < next_tick) return;
    next_tick = now + kTick;
    std::erase_if(core.sessions, [&](const auto& s) { return !s.second->on_time(now); });
  }

  void run() {
    std::array<epoll_event, 256> events;
    while (!ended) {
      const bool idle = core.sessions.empty();
      const int n = epoll_wait(core.epoll.get(), events.data(), events.size(),
                               idle ? -1 : static_cast<int>(kTick.count()));
      exhausted = false;
      for (int i = 0; i < n; ++i) {
        if (events[static_cast<size_t>(i)].data.u64 == 0)
          for (const auto& work : core.inbox->take()) work(core);
        else
          on_event(events[static_cast<size_t>(i)]);
      }
      tick();
      core.open = core.sessions.size();
      core.runs_known = core.runs.size();
      // Without a free descriptor a listener stays readable: waiting beats spinning.
      if (exhausted) std::this_thread::sleep_for(kExhaustedPause);
    }
    core.sessions.clear();
    core.listeners.clear();
    core.runs.clear();
    core.open = core.runs_known = 0;
  }

  void stop() {
    if (!thread.joinable()) return;
    core.inbox->post([this](Core&) { ended = true; });
    thread.join();
  }

  Core core;
  Steady::time_point next_tick{};
  bool ended = false, exhausted = false;
  std::thread thread;
  std::vector<std::string> unix_paths;
};

Front::Front(runs::Registry& registry, http::Server& broker, FrontOptions options)
    : impl_(std::make_unique<Impl>(registry, broker, std::move(options))) {}

Front::~Front() {
  impl_->core.registry.on_remove({});
  stop();
}

void Front::listen(const http::ListenOn& where) {
  Impl::add_listener(impl_->core, {http::listen_on(where), "", where.proxy_v2});
  if (!where.unix_path.empty()) impl_->unix_paths.push_back(where.unix_path);
}

void Front::listen_unix(const std::string& path, int mode) {
  http::ListenOn where;
  where.unix_path = path;
  where.unix_mode = mode;
  where.proxy_v2 = true;
  listen(where);
}

void Front::start() {
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

void Front::stop() {
  impl_->stop();
  for (const std::string& path : std::exchange(impl_->unix_paths, {})) unlink(path.c_str());
}

std::shared_ptr<void> Front::adopt_listener(Fd listening, std::string endpoint) {
  const auto inbox = impl_->core.inbox;
  const auto held = std::make_shared<Fd>(std::move(listening));
  if (fcntl(held->get(), F_SETFL, fcntl(held->get(), F_GETFL) | O_NONBLOCK) != 0)
    throw errno_error(Code::internal, "adopt a listener");
  inbox->post([held, endpoint](Core& core) {
    Impl::add_listener(core, {std::move(*held), endpoint, false});
  });
  return {nullptr, [weak = std::weak_ptr(inbox), endpoint](void*) {
            if (const auto to = weak.lock())
              to->post([endpoint](Core& core) { Impl::drop_listener(core, endpoint); });
          }};
}

FrontStats Front::stats() const {
  const Core& core = impl_->core;
  return {core.open, core.runs_known, core.accepted, core.dropped};
}

}  // namespace umpteenth::broker
