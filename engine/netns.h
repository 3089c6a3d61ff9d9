// The `namespace` attachment: umpd listens inside a sandbox's own network namespace, on 127.0.0.1,
// so that the sandbox needs no network to reach the broker.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "engine/engine.h"

namespace umpteenth::engine {

// A listening socket keeps its namespace alive: close it when `process` becomes readable.
struct NamespaceListener {
  Fd process;  // pidfd of the sandbox's first process: readable once that has ended
  Fd socket;   // listens on 127.0.0.1
  // Where a resolver was asked for: its port 53 there.
  Fd dns_datagrams, dns_listener;
};

// For a container that was started and in which nothing untrusted has run yet: the address is ours
// then, for as long as the socket lives. What is entered is proven: the engine names the process
// twice, its cgroup names the container, the namespace is not umpd's, the process lives afterwards.
// Error(not_found, "sandbox is gone…"); Error(conflict) where another socket has the address;
// Error(forbidden) where the process cannot be entered or is none of this host's.
NamespaceListener listen_in_sandbox(Engine& engine, const std::string& container, int port,
                                    bool resolver = false);

// The parts of it.
// Enters the network namespace of the process on a thread of its own, which ends with the call.
Fd listen_in_namespace_of(int pidfd, int port);
Fd bind_datagrams_in_namespace_of(int pidfd, int port);
// Whether /proc/<pid>/cgroup's text has the id as a whole name.
bool cgroup_names(std::string_view cgroup, std::string_view container_id);

}  // namespace umpteenth::engine
