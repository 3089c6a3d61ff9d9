#include "base/net/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace umpteenth::net {
namespace {

constexpr std::array<uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::array<uint8_t, 12> kNat64{0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0};

template <size_t n>
bool starts_with(const Address& address, const std::array<uint8_t, n>& prefix) {
  return std::equal(prefix.begin(), prefix.end(), address.bytes.begin());
}

constexpr Address v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}};
}
constexpr Address v6(uint16_t first, uint16_t second = 0, uint16_t third = 0, uint16_t last = 0) {
  Address address;
  const auto put = [&](size_t at, uint16_t group) {
    address.bytes[at] = static_cast<uint8_t>(group >> 8);
    address.bytes[at + 1] = static_cast<uint8_t>(group);
  };
  put(0, first);
  put(2, second);
  put(4, third);
  put(14, last);
  return address;
}

// Without any unwrapping.
std::optional<Address> parse_plain(std::string_view text) {
  // glibc's inet_pton is strict: four decimal octets without leading zeros, or one IPv6 literal.
  std::array<char, INET6_ADDRSTRLEN> z{};
  if (text.empty() || text.size() >= z.size() || text.find('\0') != std::string_view::npos)
    return std::nullopt;
  std::copy(text.begin(), text.end(), z.begin());
  Address address;
  if (text.find(':') != std::string_view::npos)
    return inet_pton(AF_INET6, z.data(), address.bytes.data()) == 1 ? std::optional(address)
                                                                    : std::nullopt;
  std::copy(kMapped.begin(), kMapped.end(), address.bytes.begin());
  return inet_pton(AF_INET, z.data(), address.bytes.data() + 12) == 1 ? std::optional(address)
                                                                      : std::nullopt;
}

// The bits of a prefix, counted in the 128-bit form.
int full_prefix(const Cidr& cidr) { return cidr.base.is_v4() ? cidr.prefix + 96 : cidr.prefix; }

bool same_prefix(const Address& a, const Address& b, int bits) {
  const auto whole = static_cast<size_t>(bits / 8);
  if (!std::equal(a.bytes.begin(), a.bytes.begin() + whole, b.bytes.begin())) return false;
  if (bits % 8 == 0) return true;
  const auto mask = static_cast<uint8_t>(0xff << (8 - bits % 8));
  return (a.bytes[whole] & mask) == (b.bytes[whole] & mask);
}

bool any_contains(const std::vector<Cidr>& ranges, const Address& address) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Cidr& range) { return range.contains(address); });
}

struct Row {
  Cidr range;
  Class is;
};

// The first row that contains an address decides. docs/security.md shows the same table.
constexpr std::array kRows{
    Row{{v4(169, 254, 0, 0), 16}, Class::metadata},
    Row{{v4(100, 100, 100, 200), 32}, Class::metadata},
    Row{{v6(0xfd00, 0xec2, 0, 0x254), 128}, Class::metadata},
    Row{{v4(0, 0, 0, 0), 32}, Class::host_local},  // unspecified
    Row{{v4(127, 0, 0, 0), 8}, Class::host_local},
    Row{{v4(224, 0, 0, 0), 4}, Class::host_local},  // multicast
    Row{{v6(0), 128}, Class::host_local},
    Row{{v6(0, 0, 0, 1), 128}, Class::host_local},
    Row{{v6(0xfe80), 10}, Class::host_local},
    Row{{v6(0xff00), 8}, Class::host_local},
    Row{{v4(10, 0, 0, 0), 8}, Class::private_range},
    Row{{v4(172, 16, 0, 0), 12}, Class::private_range},
    Row{{v4(192, 168, 0, 0), 16}, Class::private_range},
    Row{{v4(100, 64, 0, 0), 10}, Class::private_range},
    Row{{v4(0, 0, 0, 0), 8}, Class::private_range},
    Row{{v4(192, 0, 0, 0), 24}, Class::private_range},
    Row{{v4(198, 18, 0, 0), 15}, Class::private_range},
    Row{{v4(240, 0, 0, 0), 4}, Class::private_range},
    Row{{v6(0xfc00), 7}, Class::private_range},
    Row{{v6(0xfec0), 10}, Class::private_range},           // the old site-local
    Row{{v6(0x64, 0xff9b, 1), 48}, Class::private_range},  // local NAT64, RFC 8215
};

Class by_range(const Address& address) {
  for (const Row& row : kRows)
    if (row.range.contains(address)) return row.is;
  return Class::is_public;
}

Address mapped(const uint8_t* octets) { return v4(octets[0], octets[1], octets[2], octets[3]); }

// The IPv4 address that a tunnel would really deliver to: 6to4, Teredo, v4-compatible.
std::optional<Address> tunnelled(const Address& address) {
  const auto& b = address.bytes;
  if (b[0] == 0x20 && b[1] == 0x02) return mapped(&b[2]);
  if (starts_with(address, std::array<uint8_t, 4>{0x20, 0x01, 0, 0})) {
    const std::array<uint8_t, 4> client{static_cast<uint8_t>(~b[12]), static_cast<uint8_t>(~b[13]),
                                        static_cast<uint8_t>(~b[14]), static_cast<uint8_t>(~b[15])};
    return mapped(client.data());
  }
  if (starts_with(address, std::array<uint8_t, 12>{})) return mapped(&b[12]);
  return std::nullopt;
}

Class classify_plain(const Address& address, const Topology& topology) {
  const Class range = by_range(address);
  if (range == Class::metadata || range == Class::host_local) return range;
  const bool gateway = std::find(topology.gateways.begin(), topology.gateways.end(), address) !=
                       topology.gateways.end();
  if (!gateway && any_contains(topology.containers, address)) return Class::container;
  if (any_contains(topology.blocked, address)) return Class::blocked;
  if (range == Class::private_range && !topology.known) return Class::container;
  return range;
}

}  // namespace

bool Address::is_v4() const { return starts_with(*this, kMapped); }

Address unwrap(const Address& address) {
  return starts_with(address, kNat64) ? mapped(&address.bytes[12]) : address;
}

bool Cidr::contains(const Address& address) const {
  return base.is_v4() == address.is_v4() && same_prefix(base, address, full_prefix(*this));
}

bool Cidr::overlaps(const Cidr& other) const {
  return base.is_v4() == other.base.is_v4() &&
         same_prefix(base, other.base, std::min(full_prefix(*this), full_prefix(other)));
}

std::optional<Address> parse_address(std::string_view text) {
  const size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    if (percent + 1 == text.size() || text.substr(0, percent).find(':') == std::string_view::npos)
      return std::nullopt;
    text = text.substr(0, percent);
  }
  const auto address = parse_plain(text);
  return address ? std::optional(unwrap(*address)) : std::nullopt;
}

std::optional<Cidr> parse_cidr(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto base = parse_plain(text.substr(0, slash));
  const std::string_view digits = text.substr(slash + 1);
  int prefix = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
  if (!base || error != std::errc() || end != digits.data() + digits.size() || prefix < 0 ||
      (digits.size() > 1 && digits.front() == '0') || digits.front() == '-')
    return std::nullopt;
  const bool written_as_v6 = text.substr(0, slash).find(':') != std::string_view::npos;
  // IPv4 ranges are written as IPv4: a range of wrapped ones never matches what classify() sees.
  if (written_as_v6 && (base->is_v4() || starts_with(*base, kNat64))) return std::nullopt;
  if (prefix > (written_as_v6 ? 128 : 32)) return std::nullopt;
  const Cidr cidr{*base, prefix};
  for (int bit = full_prefix(cidr); bit < 128; ++bit)
    if ((base->bytes[static_cast<size_t>(bit / 8)] >> (7 - bit % 8) & 1) != 0) return std::nullopt;
  return cidr;
}

std::string format(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.is_v4())
    inet_ntop(AF_INET, address.bytes.data() + 12, text.data(), text.size());
  else
    inet_ntop(AF_INET6, address.bytes.data(), text.data(), text.size());
  return text.data();
}

std::string format(const Cidr& cidr) {
  return format(cidr.base) + "/" + std::to_string(cidr.prefix);
}

std::string_view class_name(Class c) {
  switch (c) {
    case Class::host_local:
      return "host-local";
    case Class::metadata:
      return "metadata";
    case Class::private_range:
      return "private";
    case Class::container:
      return "container";
    case Class::blocked:
      return "blocked";
    case Class::is_public:
      return "public";
  }
  return "unknown";
}

Class classify(const Address& wrapped, const Topology& topology) {
  const Address address = unwrap(wrapped);
  const Class direct = classify_plain(address, topology);
  if (direct != Class::is_public) return direct;
  const auto inner = tunnelled(address);
  return inner ? classify_plain(*inner, topology) : direct;
}

}  // namespace umpteenth::net
