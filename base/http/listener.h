// A bound, listening socket. Plain POSIX.
#pragma once

#include <optional>

#include "base/fd.h"
#include "base/http/server.h"

namespace umpteenth::http {

// Error(unavailable) names address and cause. A stale Unix socket is replaced; a living one is not.
Fd listen_on(const ListenOn& where);
int bound_port(int listener);  // 0 for a Unix socket

struct Accepted {
  Fd socket;
  Endpoint peer, local;
};
// nullopt when nobody waits; `exhausted` when the process has no descriptor left.
std::optional<Accepted> accept_from(int listener, bool& exhausted);

}  // namespace umpteenth::http
