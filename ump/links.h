// The network interfaces of this network namespace, by netlink: which are ports of a bridge, and
// whether a port is isolated (reaches no other isolated port of its bridge).
#pragma once

#include "ump/buffer.h"

namespace umpteenth::ump {

// A line each: `<interface>`, and for a bridge's port ` <bridge> isolated|open` behind it.
bool list_links(Buffer* into);

// Sets all ports of the bridge isolated; *ports counts them.
bool isolate_ports(const char* bridge, int* ports);

// Takes the interface away; gone already is success.
bool remove_link(const char* interface);

}  // namespace umpteenth::ump
