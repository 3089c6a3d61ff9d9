// Watches: a state machine fed by the store's own thread into a bounded stream; no thread each.
#pragma once

#include "server/call.h"

namespace umpteenth::server {

http::Response watch_objects(Env& env, Call& call);

size_t open_watches();  // for /metrics

}  // namespace umpteenth::server
