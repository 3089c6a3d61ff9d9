// The network namespace of an engine's host, where the engine is on this machine and umpd may enter
// it. Usually it is umpd's own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"

namespace umpteenth::engine::firewall {

class HostNamespace {
 public:
  // endpoint: the engine's. The namespace is that of the process which listens on its socket.
  // Error(unavailable) says why umpd cannot act there: another machine, another PID namespace, no
  // root.
  static HostNamespace find(const std::string& endpoint);

  // Runs f in the namespace: here, or on a thread that has entered it and ends afterwards. What it
  // throws comes through; programs that it starts are in the namespace too.
  void run(const std::function<void()>& f) const;

 private:
  Fd other_;  // empty where it is umpd's own
};

}  // namespace umpteenth::engine::firewall
