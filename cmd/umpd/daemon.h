// umpd put together: every part, in the order in which they need each other.
#pragma once

#include "cmd/umpd/config.h"

namespace umpteenth::umpd {

// Runs until SIGTERM or SIGINT; ends within 10 s. SIGHUP rotates the admin token.
int serve(const Config& config);

// Prints the token of DATA/kubeconfig. rotate: makes a new one, through the running umpd where
// there is one.
int admin_token(const Config& config, bool rotate);

}  // namespace umpteenth::umpd
