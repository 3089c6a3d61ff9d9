#include "engine/firewall/rules.h"

#include <algorithm>

#include "base/error.h"
#include "engine/names.h"

namespace umpteenth::engine::firewall {
namespace {

using Rules = std::vector<std::string>;

constexpr const char* kPrivate[] = {"0.0.0.0/8",    "10.0.0.0/8",     "100.64.0.0/10",
                                    "127.0.0.0/8",  "169.254.0.0/16", "172.16.0.0/12",
                                    "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15",
                                    "224.0.0.0/4",  "240.0.0.0/4"};
constexpr const char* kMetadata[] = {"169.254.0.0/16", "100.100.100.200/32"};

const char kEstablished[] = "-m conntrack --ctstate RELATED,ESTABLISHED -j RETURN";

void check_interface(const Bridge& bridge) {
  std::string name = bridge.interface;
  if (bridge.reach == Reach::closed && name.size() > 2 && name.ends_with('+')) name.pop_back();
  const bool fine = !name.empty() && name.size() <= 15 && name != "." && name != ".." &&
                    std::ranges::all_of(name, [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
                    });
  if (!fine || name.front() == '-')
    throw Error(Code::invalid, "bridge interface \"" + bridge.interface.substr(0, 40) +
                                   "\": not a name of at most 15 letters, digits, '-', '_', '.'");
}

Rules begun() { return {std::string("-m comment --comment ") + kVersionComment, kEstablished}; }

// A reset first: the kernel limits how many ICMP errors it sends, so that of many refused
// connections at once most would hang until their timeout.
void refuse(Rules& rules, const std::string& destination) {
  const std::string to = destination.empty() ? "" : "-d " + destination + " ";
  rules.push_back(to + "-p tcp -j REJECT --reject-with tcp-reset");
  rules.push_back(to + "-j REJECT --reject-with icmp-port-unreachable");
}

template <typename Ranges>
Rules refusing(const Ranges& ranges) {
  Rules rules = begun();
  for (const auto& range : ranges) refuse(rules, range);
  return rules;
}

Table first_line(const Desired& desired, const Rules& blocked, const std::string& own) {
  Table t{"filter", {}, {}};
  t.chains["UMPTEENTH-PRIVATE"] = refusing(kPrivate);
  t.chains["UMPTEENTH-METADATA"] = refusing(kMetadata);
  t.chains["UMPTEENTH-HOST"] = refusing(Rules{""});
  t.chains[own] = refusing(blocked);
  for (const Bridge& b : desired.bridges) {
    if (b.reach == Reach::closed) continue;
    const bool strict = b.reach == Reach::internet;
    const std::string in = "-i " + b.interface + " -j ";
    t.jumps.push_back({"DOCKER-USER", in + own});
    t.jumps.push_back({"DOCKER-USER", in + (strict ? "UMPTEENTH-PRIVATE" : "UMPTEENTH-METADATA")});
    t.jumps.push_back({"INPUT", in + own});
    t.jumps.push_back({"INPUT", in + (strict ? "UMPTEENTH-HOST" : "UMPTEENTH-METADATA")});
  }
  return t;
}

void drop_to(Rules& rules, const std::string& range, const std::string& interface) {
  rules.push_back("-d " + range + " -i " + interface + " -j DROP");
}

Table second_line(const Desired& desired, const Rules& blocked, const Rules& containers,
                  const std::string& own) {
  Rules forward = begun(), input = begun();
  for (const Bridge& b : desired.bridges) {
    const std::string in = "-i " + b.interface;
    if (b.reach == Reach::closed) {
      forward.push_back(in + " ! -o " + b.interface + " -j DROP");
      input.push_back(in + " -j DROP");
      continue;
    }
    forward.push_back("! " + in + " -o " + b.interface + " -j DROP");
    forward.push_back(in + " -o " + b.interface + " -j DROP");
    for (const std::string& range : blocked) {
      drop_to(forward, range, b.interface);
      if (b.reach == Reach::internet_private) drop_to(input, range, b.interface);
    }
    if (b.reach == Reach::internet) {
      forward.push_back(in + " -m conntrack --ctstate DNAT -j DROP");
      for (const char* range : kPrivate) drop_to(forward, range, b.interface);
      for (const std::string& range : containers) drop_to(forward, range, b.interface);
      input.push_back(in + " -j DROP");
    } else {
      for (const char* range : kMetadata) {
        drop_to(forward, range, b.interface);
        drop_to(input, range, b.interface);
      }
      for (const std::string& range : containers)
        forward.push_back("-d " + range + " " + in + " -m conntrack ! --ctstate DNAT -j DROP");
    }
  }
  return {"security",
          {{own, forward}, {own + "-IN", input}},
          {{"FORWARD", "-j " + own}, {"INPUT", "-j " + own + "-IN"}}};
}

Rules ipv4_of(const std::vector<net::Cidr>& ranges) {
  Rules texts;
  for (const net::Cidr& c : ranges)
    if (c.base.is_v4()) texts.push_back(net::format(c));
  return texts;
}

Table no_ipv6(const Desired& desired, const std::string& own) {
  Rules rules = {begun().front()};
  for (const Bridge& b : desired.bridges) rules.push_back("-i " + b.interface + " -j DROP");
  return {"security", {{own, rules}}, {{"FORWARD", "-j " + own}, {"INPUT", "-j " + own}}};
}

}  // namespace

std::string own_chain(std::string_view instance) { return "UMPTEENTH-" + short_hash(instance, 8); }

Ruleset plan_rules(const Desired& desired) {
  Ruleset r;
  r.own_chain = own_chain(desired.instance);
  for (const Bridge& b : desired.bridges) {
    check_interface(b);
    r.interfaces.push_back(b.interface);
  }
  const Rules blocked = ipv4_of(desired.blocked), containers = ipv4_of(desired.containers);
  r.ipv4 = {first_line(desired, blocked, r.own_chain),
            second_line(desired, blocked, containers, r.own_chain)};
  r.ipv6 = {no_ipv6(desired, r.own_chain)};
  return r;
}

}  // namespace umpteenth::engine::firewall
