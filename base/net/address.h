// The one address policy: the egress proxy, the outbound client and the firewall rules use it.
// Pure. See docs/security.md for the table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace umpteenth::net {

// IPv4 is kept v4-mapped; v4-mapped and NAT64 (64:ff9b::/96) are unwrapped by parse, zones dropped.
struct Address {
  std::array<uint8_t, 16> bytes{};
  bool is_v4() const;
  auto operator<=>(const Address&) const = default;
};

struct Cidr {
  Address base;
  int prefix = 0;  // 0–32 for IPv4, 0–128 for IPv6
  bool contains(const Address& address) const;
  bool overlaps(const Cidr& other) const;
  auto operator<=>(const Cidr&) const = default;
};

enum class Class { host_local, metadata, private_range, container, blocked, is_public };

struct Topology {
  std::vector<Cidr> containers;   // the engine's subnets
  std::vector<Address> gateways;  // these count as the host, not as containers
  std::vector<Cidr> blocked;      // network.blocked_targets and SandboxEngine.spec.blockedTargets
  bool known = false;             // false: private addresses count as containers (fail closed)
};

// Literals only, strict: no octal, no short forms. nullopt otherwise.
std::optional<Address> parse_address(std::string_view text);
std::optional<Cidr> parse_cidr(std::string_view text);  // host bits must be zero
std::string format(const Address& address);
std::string format(const Cidr& cidr);
std::string_view class_name(Class c);

// NAT64 to the IPv4 address inside; for addresses that did not come through parse_address (the
// sockaddr of a resolver's answer). classify() does it itself.
Address unwrap(const Address& address);

// Total. Addresses of 6to4, Teredo and the v4-compatible form are judged by the IPv4 one inside.
Class classify(const Address& address, const Topology& topology);

}  // namespace umpteenth::net
