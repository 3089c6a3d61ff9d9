// The engines that the SandboxEngine resources name, each with what sandboxes on it need: prepared
// images, run networks with the broker's endpoint in them. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "apis/sandbox_engine.h"
#include "base/clock.h"
#include "base/fd.h"
#include "controllers/firewall/guard.h"
#include "engine/engine.h"

namespace umpteenth::controllers {

struct PreparedImage {
  std::string id;      // ready to be started: the job's image with `ump` and its folders in it
  std::string digest;  // of the image that the job named
};

struct RunNetwork {
  std::string id, name;
  std::string broker_ip, sandbox_ip;
};

// The broker's listener inside one sandbox's network namespace. Thread-safe.
class BrokerDoor {
 public:
  // process: pidfd of the sandbox's first process. listener: closes it when dropped.
  BrokerDoor(std::string endpoint, Fd process, std::shared_ptr<void> listener)
      : endpoint_(std::move(endpoint)),
        process_(std::move(process)),
        listener_(std::move(listener)) {}

  const std::string& endpoint() const { return endpoint_; }  // the token's
  int process() const { return process_.get(); }             // readable once it has ended
  void close() {
    std::lock_guard lock(mutex_);
    listener_.reset();
  }

 private:
  const std::string endpoint_;
  const Fd process_;
  std::mutex mutex_;
  std::shared_ptr<void> listener_;
};

// What differs between a real engine and a test's.
class EngineHandle {
 public:
  struct Parts {
    std::shared_ptr<engine::Engine> engine;
    std::function<PreparedImage(const std::string& image, std::stop_token stop)> prepare_image;
    // Makes the run's internal network, or takes it up again; the broker's endpoint in it is
    // confirmed by inspect. labels: the run's.
    std::function<RunNetwork(const std::string& run_uid, const engine::Labels& labels)>
        create_network;
    // By id, else by what belongs to the run; gone already is success.
    std::function<void(const std::string& id)> remove_network;
    // The broker's endpoint is in the network with its address. Error(unavailable) engine down.
    std::function<bool(const RunNetwork& network)> broker_attached;
    // Why the broker cannot listen inside sandboxes with that runtime, or "". May try it on a
    // sandbox of no run. Error(unavailable) engine down.
    std::function<std::string(const std::string& runtime)> namespace_obstacle;
    // Listens inside a sandbox that was started and in which nothing untrusted runs yet.
    std::function<std::shared_ptr<BrokerDoor>(const std::string& run_uid,
                                              const std::string& container)>
        open_door;
    std::function<std::vector<std::string>(std::stop_token stop)> collect_garbage;
    // Of the engine's host; null where there is no way to it.
    std::shared_ptr<firewall::Guard> guard;
  };

  EngineHandle(std::string name, apis::SandboxEngineSpec spec, Parts parts)
      : name_(std::move(name)), spec_(std::move(spec)), parts_(std::move(parts)) {}

  const std::string& name() const { return name_; }
  const apis::SandboxEngineSpec& spec() const { return spec_; }
  engine::Engine& engine() const { return *parts_.engine; }
  const Parts& parts() const { return parts_; }

 private:
  std::string name_;
  apis::SandboxEngineSpec spec_;
  Parts parts_;
};

class Engines {
 public:
  using Make = std::function<EngineHandle::Parts(const apis::SandboxEngineSpec& spec)>;
  explicit Engines(Make make) : make_(std::move(make)) {}

  // Makes the handle, or makes it anew when spec's endpoint, type or subnet pool changed; runs keep
  // the handle that they began with.
  std::shared_ptr<EngineHandle> ensure(const std::string& name,
                                       const apis::SandboxEngineSpec& spec);
  void remove(const std::string& name);
  std::shared_ptr<EngineHandle> find(const std::string& name) const;  // "" = default; null
  std::vector<std::shared_ptr<EngineHandle>> all() const;

 private:
  Make make_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<EngineHandle>> handles_;
};

}  // namespace umpteenth::controllers
