// Notices within a second that a live sandbox lost its container, its network or the broker's
// endpoint: by its first process where there is a door, else by the engine's events and by looking
// again all the time.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "controllers/run/process_watch.h"
#include "controllers/run/sandbox.h"

namespace umpteenth::controllers::run {

class SandboxWatch {
 public:
  SandboxWatch() = default;
  ~SandboxWatch() { stop(); }
  SandboxWatch(const SandboxWatch&) = delete;
  SandboxWatch& operator=(const SandboxWatch&) = delete;

  // gone: called once, on a thread of this object, when the sandbox is not intact any more. Looks
  // once at the start, so nothing is missed between the sandbox's making and the first event.
  void add(const std::string& run_uid, std::shared_ptr<EngineHandle> handle, Sandbox sandbox,
           std::function<void()> gone);
  void remove(const std::string& run_uid);
  int64_t watched(const std::string& engine_name) const;
  void stop();

 private:
  struct Watched {
    std::shared_ptr<EngineHandle> handle;
    Sandbox sandbox;
    std::function<void()> gone;
  };
  // One an engine client: a thread that reads events, a thread that looks.
  struct Observer {
    std::shared_ptr<engine::Engine> engine;
    std::mutex mutex;
    std::condition_variable_any changed;
    bool look = true;
    std::jthread events, looker;
  };

  void observe(const std::shared_ptr<engine::Engine>& engine);
  void lost(const std::string& run_uid);
  void read_events(Observer& observer, const std::stop_token& stop);
  void look(Observer& observer, const std::stop_token& stop);
  void look_once(const engine::Engine* engine);
  bool concerns_us(const engine::EngineEvent& event) const;

  mutable std::mutex mutex_;
  std::map<std::string, Watched> watched_;
  std::map<const engine::Engine*, std::unique_ptr<Observer>> observers_;
  bool stopped_ = false;
  ProcessWatch processes_;
};

}  // namespace umpteenth::controllers::run
