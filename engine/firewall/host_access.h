// How umpd reads and changes the firewall of an engine's host: itself, or by a short-lived helper
// container. Both run `ump hostfw`. All calls block and throw Error; they are not to be made from
// two threads at once.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "engine/engine.h"
#include "engine/firewall/host_namespace.h"
#include "engine/firewall/inspect.h"

namespace umpteenth::engine::firewall {

class HostFirewall {
 public:
  virtual ~HostFirewall() = default;
  virtual Host read() = 0;
  // A transaction a table: what a table's text says happens whole or not at all.
  virtual void restore(const std::string& backend, const Restore& rules) = 0;
  // Ports of the bridges isolated, and no IPv6 on them.
  virtual void isolate(const std::vector<std::string>& bridges) = 0;
  // Takes away a network interface that nobody has a use for any more; gone already is success.
  virtual void remove_link(const std::string& interface) = 0;
};

// In the engine's network namespace with the iptables of umpd's own file system.
std::unique_ptr<HostFirewall> make_direct_access(std::shared_ptr<const HostNamespace> host,
                                                 std::filesystem::path ump, Runner& runner);

// By a container with the host's network and PID 1's programs, removed at its end.
struct HelperOptions {
  std::string instance;
  std::function<std::string()> image;  // the helper image's id
};
std::unique_ptr<HostFirewall> make_helper_access(Engine& engine, HelperOptions options);

}  // namespace umpteenth::engine::firewall
