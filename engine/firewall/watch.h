// Tells that something on an engine's host may have changed what its firewall holds, within
// milliseconds: rules (nftables' netlink group; the lock of the legacy iptables), interfaces and
// the flags of bridges' ports (rtnetlink). It says when to look, never what happened.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "engine/firewall/host_namespace.h"

namespace umpteenth::engine::firewall {

class HostWatch {
 public:
  // changed is called on a thread of this object, once for what comes together; it must be short.
  // Error(unavailable) where the kernel does not let umpd listen.
  HostWatch(const HostNamespace& host, std::function<void()> changed);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  // Whether changes of the legacy iptables' tables are noticed too.
  bool sees_legacy() const { return sees_legacy_; }

 private:
  void read();

  std::vector<Fd> sources_;
  Fd wake_;
  bool sees_legacy_ = false;
  std::function<void()> changed_;
  std::jthread thread_;
};

}  // namespace umpteenth::engine::firewall
