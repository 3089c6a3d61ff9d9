// Which addresses are containers on the engines that the SandboxEngine resources name, for the
// egress proxy.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/net/address.h"
#include "engine/engine.h"
#include "store/store.h"

namespace umpteenth::umpd {

class EngineTopology {
 public:
  EngineTopology(store::Store& store, std::vector<net::Cidr> blocked)
      : store_(store), blocked_(std::move(blocked)) {}
  // At most 30 s old; blocks while engines are asked. known once every engine has answered; what
  // an engine said before counts on while it does not answer. Thread-safe.
  net::Topology now();

 private:
  struct Known {
    std::unique_ptr<engine::Engine> engine;
    std::vector<net::Cidr> subnets;
    std::vector<net::Address> gateways;
    bool answered = false;
  };
  void ask(Known& known, const std::string& endpoint);
  void refresh();

  store::Store& store_;
  const std::vector<net::Cidr> blocked_;
  std::mutex mutex_;
  std::map<std::string, Known> by_endpoint_;
  net::Topology topology_;
  std::chrono::steady_clock::time_point fresh_until_{};
};

}  // namespace umpteenth::umpd
