// Whether the host holds our rules, from what was read back, and the text that makes it hold them.
// Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/firewall/dump.h"
#include "engine/firewall/rules.h"

namespace umpteenth::engine::firewall {

struct Port {
  std::string bridge, interface;
  bool isolated = false;
  bool operator==(const Port&) const = default;
};

// What `ump hostfw save` printed.
struct Host {
  std::string backend;  // nft | legacy: the one that holds the engine's rules
  Dump ipv4, ipv6;
  bool ipv6_present = true;      // the host's kernel has IPv6
  bool bridge_filtered = false;  // frames between ports of a bridge pass iptables (br_netfilter)
  std::set<std::string> interfaces;
  std::set<std::string> ipv6_interfaces;  // those on which IPv6 is on
  std::vector<Port> ports;
};
Host parse_host(std::string_view saved);  // Error(bad_gateway)

struct Verdict {
  bool enforced = false;
  std::string reason;  // "" where enforced
};
Verdict inspect(const Ruleset& wanted, const Host& host);

// For iptables-restore --noflush, one transaction a table; "" where nothing is to be done. Chains
// that lack a rule are replaced whole; jumps that are missing, doubled or too late come first
// again; jumps of bridges that are gone go.
struct Restore {
  std::string ipv4, ipv6;
  bool empty() const { return ipv4.empty() && ipv6.empty(); }
};
std::string restore_text(const Restore& restore);  // what `ump hostfw restore` takes
Restore plan_restore(const Ruleset& wanted, const Host& host);

// Takes out what is this installation's; the shared chains only where no other bridge uses them.
Restore plan_removal(const Ruleset& ours, const Host& host);

}  // namespace umpteenth::engine::firewall
