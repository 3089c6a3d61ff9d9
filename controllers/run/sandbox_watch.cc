#include "controllers/run/sandbox_watch.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/log.h"

namespace umpteenth::controllers::run {
namespace {
// Also while events are read: nobody knows when a stream that was asked for is really open.
constexpr std::chrono::milliseconds kLook{700};
constexpr std::chrono::milliseconds kReopen{250};
}  // namespace

void SandboxWatch::add(const std::string& run_uid, std::shared_ptr<EngineHandle> handle,
                       Sandbox sandbox, std::function<void()> gone) {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  const auto engine = handle->parts().engine;
  const auto door = sandbox.door;
  const bool look = !door || !sandbox.network.name.empty();
  watched_[run_uid] = {std::move(handle), std::move(sandbox), std::move(gone)};
  if (door) {
    processes_.add(run_uid, {door, door->process()}, [this, run_uid, door] {
      door->close();  // it would keep the namespace alive
      lost(run_uid);
    });
  }
  if (look) observe(engine);
}

// Has the sandboxes on the engine looked at, at once and from then on.
void SandboxWatch::observe(const std::shared_ptr<engine::Engine>& engine) {
  auto& observer = observers_[engine.get()];
  if (!observer) {
    observer = std::make_unique<Observer>();
    observer->engine = engine;
    Observer* made = observer.get();
    made->looker = std::jthread([this, made](const std::stop_token& stop) { look(*made, stop); });
    made->events =
        std::jthread([this, made](const std::stop_token& stop) { read_events(*made, stop); });
  }
  std::lock_guard inner(observer->mutex);
  observer->look = true;
  observer->changed.notify_all();
}

void SandboxWatch::remove(const std::string& run_uid) {
  processes_.remove(run_uid);
  std::lock_guard lock(mutex_);
  watched_.erase(run_uid);
}

void SandboxWatch::lost(const std::string& run_uid) {
  std::function<void()> gone;
  {
    std::lock_guard lock(mutex_);
    auto found = watched_.find(run_uid);
    if (found == watched_.end()) return;  // its driver is removing it itself
    gone = std::move(found->second.gone);
    watched_.erase(found);
  }
  log::warn("sandbox is gone", {{"run", run_uid}});
  gone();
}

int64_t SandboxWatch::watched(const std::string& engine_name) const {
  std::lock_guard lock(mutex_);
  return std::ranges::count_if(
      watched_, [&](const auto& entry) { return entry.second.handle->name() == engine_name; });
}

void SandboxWatch::stop() {
  std::map<const engine::Engine*, std::unique_ptr<Observer>> ending;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    ending.swap(observers_);
    watched_.clear();
  }
  processes_.stop();
  for (auto& [engine, observer] : ending) {
    observer->events.request_stop();
    observer->looker.request_stop();
  }
}

bool SandboxWatch::concerns_us(const engine::EngineEvent& event) const {
  auto container = event.attributes.find("container");
  std::lock_guard lock(mutex_);
  for (const auto& [uid, watched] : watched_) {
    const Sandbox& sandbox = watched.sandbox;
    if (event.id == sandbox.container || event.id == sandbox.network.id) return true;
    if (container != event.attributes.end() && container->second == sandbox.container) return true;
  }
  return false;
}

void SandboxWatch::read_events(Observer& observer, const std::stop_token& stop) {
  auto look_now = [&observer] {
    std::lock_guard lock(observer.mutex);
    observer.look = true;
    observer.changed.notify_all();
  };
  while (!stop.stop_requested()) {
    try {
      observer.engine->events(
          {},
          [&](const engine::EngineEvent& event) {
            if (event.type != "image" && concerns_us(event)) look_now();
          },
          stop);
    } catch (const Error& e) {  // the looker looks anyway
      log::debug("engine event stream ended", {{"error", log::clip(e.message())}});
    }
    if (stop.stop_requested()) return;
    look_now();  // what happened meanwhile was not seen
    std::unique_lock lock(observer.mutex);
    observer.changed.wait_for(lock, stop, kReopen, [] { return false; });
  }
}

void SandboxWatch::look(Observer& observer, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(observer.mutex);
      observer.changed.wait_for(lock, stop, kLook, [&observer] { return observer.look; });
      observer.look = false;
    }
    if (stop.stop_requested()) return;
    look_once(observer.engine.get());
  }
}

void SandboxWatch::look_once(const engine::Engine* engine) {
  std::map<std::string, Watched> now;
  {
    std::lock_guard lock(mutex_);
    now = watched_;
  }
  for (auto& [uid, watched] : now) {
    if (watched.handle->parts().engine.get() != engine) continue;
    if (watched.sandbox.door && watched.sandbox.network.name.empty()) continue;
    bool intact = true;
    try {
      intact = sandbox_intact(*watched.handle, watched.sandbox);
    } catch (const Error&) {  // an engine that does not answer is not a dead run: look again
      return;
    }
    if (!intact) lost(uid);
  }
}

}  // namespace umpteenth::controllers::run
