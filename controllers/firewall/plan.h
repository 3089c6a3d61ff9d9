// What an engine's host needs done so that sandboxes with Internet access reach what they may and
// nothing else. Pure: no I/O, no clock, no log.
//
//   egress networks ──► rules and ports ──► sandboxes connected (or cut off)
//
// A plan has the steps of one stage; when they are done the host is observed again. No actions:
// nothing can be done any more, and the verdict stands.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "engine/egress_networks.h"
#include "engine/firewall/inspect.h"
#include "engine/types.h"

namespace umpteenth::controllers::firewall {

using engine::firewall::Reach;

// A live sandbox with Internet access.
struct Member {
  std::string run_uid, container;
  Reach reach = Reach::internet;
  auto operator<=>(const Member&) const = default;
};

struct Wanted {
  std::string instance;  // owns chains and networks
  std::vector<net::Cidr> blocked;
  std::vector<net::Cidr> pools;  // subnets of run networks
  bool required = false;         // no sandbox on an egress network without the rules
  std::vector<Member> members;
};

struct Observed {
  std::vector<engine::Network> networks;  // all; those of ours for egress with their members
  std::optional<engine::firewall::Host> host;
  std::string error;                  // why the host is not known
  std::set<std::string> stale_links;  // bridges of run networks that no network has, for long
};

struct RemoveNetwork {
  std::string id, name, reason;
  bool operator==(const RemoveNetwork&) const = default;
};
struct CreateNetwork {
  engine::NetworkSpec spec;
  bool operator==(const CreateNetwork&) const = default;
};
struct Restore {
  std::string backend, ipv4, ipv6;
  std::string reason;
  bool operator==(const Restore&) const = default;
};
struct Isolate {
  std::vector<std::string> bridges;
  std::string reason;
  bool operator==(const Isolate&) const = default;
};
struct Connect {
  std::string network;  // its name
  Member member;
  bool operator==(const Connect&) const = default;
};
struct CutOff {
  std::string network;
  Member member;
  bool operator==(const CutOff&) const = default;
};
struct RemoveLink {
  std::string interface;
  bool operator==(const RemoveLink&) const = default;
};
using Action =
    std::variant<RemoveNetwork, CreateNetwork, Restore, Isolate, Connect, CutOff, RemoveLink>;
std::string to_string(const Action& action);  // one line

struct Plan {
  std::vector<Action> actions;
  engine::firewall::Verdict verdict;
};
Plan plan(const Wanted& wanted, const Observed& observed);

// The steps when the actions of a plan failed: nobody stays on an egress network without rules.
std::vector<Action> plan_cut_off(const Wanted& wanted, const Observed& observed);

// The rules that are wanted, given the networks there are.
engine::firewall::Desired desired_rules(const Wanted& wanted,
                                        const std::vector<engine::Network>& networks);

// Bridges of run networks of the instance that no network has.
std::set<std::string> orphan_links(const Wanted& wanted, const Observed& observed);

}  // namespace umpteenth::controllers::firewall
