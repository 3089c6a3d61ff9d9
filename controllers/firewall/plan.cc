#include "controllers/firewall/plan.h"

#include <algorithm>

#include "base/overloaded.h"

namespace umpteenth::controllers::firewall {
namespace {

constexpr Reach kEgress[] = {Reach::internet, Reach::internet_private};

bool engine_broken(const Observed& o) {
  return o.host && !o.host->ipv4.find("filter", "DOCKER-USER");
}

// Networks that are absent, wrong, or without their bridge. An engine that lost its own chains can
// make no network and leaves half of one behind: not tried.
std::vector<Action> network_steps(const Wanted& wanted, const Observed& o) {
  std::vector<Action> steps;
  if (engine_broken(o)) return steps;
  std::vector<engine::Network> left = o.networks;
  for (const Reach reach : kEgress) {
    const engine::Network* there = engine::find_egress(o.networks, wanted.instance, reach);
    std::string fault = there ? engine::egress_fault(*there) : "";
    if (there && engine::gives_way(*there, o.networks))
      fault = "has the name of an older one of another installation";
    if (there && fault.empty() && o.host && !o.host->interfaces.contains(engine::bridge_of(*there)))
      fault = "has lost its bridge " + engine::bridge_of(*there);
    if (there && fault.empty()) continue;
    if (there) {
      steps.push_back(RemoveNetwork{there->id, there->name, fault});
      std::erase_if(left, [&](const engine::Network& n) { return n.id == there->id; });
    }
    steps.push_back(CreateNetwork{engine::egress_spec(left, wanted.instance, reach)});
  }
  return steps;
}

// Isolate tells its reason for the ports and for IPv6 alike.
std::vector<Action> rule_steps(const engine::firewall::Ruleset& rules,
                               const engine::firewall::Host& host, const std::string& reason) {
  std::vector<Action> steps;
  const engine::firewall::Restore restore = plan_restore(rules, host);
  if (!restore.empty()) steps.push_back(Restore{host.backend, restore.ipv4, restore.ipv6, reason});
  std::vector<std::string> bridges;
  for (const std::string& bridge : rules.interfaces) {
    const bool open_port = std::ranges::any_of(
        host.ports, [&](const auto& port) { return port.bridge == bridge && !port.isolated; });
    if (host.interfaces.contains(bridge) && (open_port || host.ipv6_interfaces.contains(bridge)))
      bridges.push_back(bridge);
  }
  if (!bridges.empty()) steps.push_back(Isolate{bridges, reason});
  return steps;
}

struct Place {
  std::string network;
  bool connected = false;
};

std::optional<Place> place_of(const Wanted& wanted, const Observed& o, const Member& member) {
  const engine::Network* n = engine::find_egress(o.networks, wanted.instance, member.reach);
  if (!n) return std::nullopt;
  return Place{n->name, n->members.contains(member.container)};
}

std::vector<Action> connections(const Wanted& wanted, const Observed& o) {
  std::vector<Action> steps;
  for (const Member& m : wanted.members)
    if (const auto place = place_of(wanted, o, m); place && !place->connected)
      steps.push_back(Connect{place->network, m});
  return steps;
}

}  // namespace

std::vector<Action> plan_cut_off(const Wanted& wanted, const Observed& o) {
  std::vector<Action> steps;
  if (!wanted.required) return steps;
  for (const Member& m : wanted.members)
    if (const auto place = place_of(wanted, o, m); place && place->connected)
      steps.push_back(CutOff{place->network, m});
  return steps;
}

engine::firewall::Desired desired_rules(const Wanted& wanted,
                                        const std::vector<engine::Network>& networks) {
  engine::firewall::Desired desired;
  desired.instance = wanted.instance;
  desired.blocked = wanted.blocked;
  for (const Reach reach : kEgress)
    if (const engine::Network* n = engine::find_egress(networks, wanted.instance, reach))
      desired.bridges.push_back({engine::bridge_of(*n), reach});
  desired.bridges.push_back({engine::run_bridge_prefix(wanted.instance) + "+", Reach::closed});
  std::set<net::Cidr> containers(wanted.pools.begin(), wanted.pools.end());
  for (const engine::Network& n : networks)
    for (const std::string& text : n.subnets) {
      const auto cidr = net::parse_cidr(text);
      const bool known = cidr && std::ranges::any_of(wanted.pools, [&](const net::Cidr& pool) {
                           return pool.contains(cidr->base) && pool.prefix <= cidr->prefix;
                         });
      if (cidr && !known) containers.insert(*cidr);
    }
  desired.containers.assign(containers.begin(), containers.end());
  return desired;
}

Plan plan(const Wanted& wanted, const Observed& o) {
  Plan p;
  p.actions = network_steps(wanted, o);
  if (!p.actions.empty()) {
    p.verdict.reason = "the egress networks are not as they must be";
    return p;
  }
  if (!o.host) {
    p.verdict.reason = o.error;
  } else {
    const auto rules = plan_rules(desired_rules(wanted, o.networks));
    p.verdict = inspect(rules, *o.host);
    p.actions = rule_steps(rules, *o.host, p.verdict.reason);
    for (const std::string& link : o.stale_links) p.actions.push_back(RemoveLink{link});
  }
  if (!p.actions.empty()) return p;
  p.actions =
      p.verdict.enforced || !wanted.required ? connections(wanted, o) : plan_cut_off(wanted, o);
  return p;
}

std::set<std::string> orphan_links(const Wanted& wanted, const Observed& o) {
  std::set<std::string> orphans;
  if (!o.host) return orphans;
  const std::string prefix = engine::run_bridge_prefix(wanted.instance);
  for (const std::string& interface : o.host->interfaces)
    if (interface.starts_with(prefix)) orphans.insert(interface);
  for (const engine::Network& n : o.networks) orphans.erase(engine::bridge_of(n));
  return orphans;
}

std::string to_string(const Action& action) {
  return std::visit(
      Overloaded{
          [](const RemoveNetwork& a) { return "remove network " + a.name + ": it " + a.reason; },
          [](const CreateNetwork& a) { return "create network " + a.spec.name; },
          [](const Restore& a) { return "restore the rules (" + a.backend + "): " + a.reason; },
          [](const Isolate& a) {
            std::string text = "isolate the ports of";
            for (const std::string& bridge : a.bridges) text += " " + bridge;
            return text + ": " + a.reason;
          },
          [](const Connect& a) {
            return "connect sandbox " + a.member.container.substr(0, 12) + " to " + a.network;
          },
          [](const CutOff& a) {
            return "cut sandbox " + a.member.container.substr(0, 12) + " off from " + a.network;
          },
          [](const RemoveLink& a) { return "remove the orphan bridge " + a.interface; }},
      action);
}

}  // namespace umpteenth::controllers::firewall
