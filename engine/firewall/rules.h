// What the host's firewall is to hold for our bridges. Pure: rules are printed as iptables-save
// prints them, from parsed addresses and checked interface names, so that what was read back can be
// compared with them.
//
// First line (table filter): UMPTEENTH-PRIVATE, -METADATA and -HOST are shared by all installations
// on a host; UMPTEENTH-<8 hex of the instance> holds its blocked targets. Second line (table
// security, which runs after filter and which engines never touch): UMPTEENTH-<8 hex> for what is
// forwarded and UMPTEENTH-<8 hex>-IN for the host itself. Nobody opens a connection to a sandbox.
// IPv6 is dropped from every bridge of ours.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/address.h"

namespace umpteenth::engine::firewall {

// Counts up when the rules of the shared chains change.
inline constexpr char kVersionComment[] = "umpteenth-rules-1";

enum class Reach {
  internet,          // public addresses only
  internet_private,  // and private ones, never metadata
  closed,            // its own members only (run networks)
};

struct Bridge {
  std::string interface;  // closed ones may be a family: a prefix and '+'
  Reach reach = Reach::internet;
  bool operator==(const Bridge&) const = default;
};

struct Desired {
  std::string instance;
  std::vector<Bridge> bridges;
  std::vector<net::Cidr> blocked;     // blockedTargets; IPv6 ones are blocked anyway
  std::vector<net::Cidr> containers;  // the engine's subnets: reached by published ports only
};

struct Jump {
  std::string from;  // a chain that is not ours
  std::string rule;  // what follows `-A from `
  bool operator==(const Jump&) const = default;
};

struct Table {
  std::string name;
  std::map<std::string, std::vector<std::string>> chains;  // ours: rules without `-A chain `
  std::vector<Jump> jumps;                                 // before all that could let through
};

struct Ruleset {
  std::vector<std::string> interfaces;  // of our bridges
  std::string own_chain;
  std::vector<Table> ipv4, ipv6;
};

std::string own_chain(std::string_view instance);

// Error(invalid) for an interface name that the kernel would not take or iptables would read as a
// pattern.
Ruleset plan_rules(const Desired& desired);

}  // namespace umpteenth::engine::firewall
