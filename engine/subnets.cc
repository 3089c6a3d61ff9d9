#include "engine/subnets.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"

namespace umpteenth::engine {
namespace {

uint32_t number_of(const net::Address& a) {
  return uint32_t{a.bytes[12]} << 24U | uint32_t{a.bytes[13]} << 16U | uint32_t{a.bytes[14]} << 8U |
         uint32_t{a.bytes[15]};
}

net::Address address_of(uint32_t n) {
  net::Address a;
  a.bytes[10] = a.bytes[11] = 0xff;
  for (unsigned i = 0; i < 4; ++i) a.bytes[12 + i] = static_cast<uint8_t>(n >> (24U - 8U * i));
  return a;
}

uint64_t size_of(int prefix) { return uint64_t{1} << static_cast<unsigned>(32 - prefix); }

// The kernel prints addresses as they lie in memory.
std::optional<uint32_t> route_number(std::string_view hex) {
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), n, 16);
  if (hex.size() != 8 || error != std::errc() || end != hex.data() + hex.size())
    return std::nullopt;
  if constexpr (std::endian::native == std::endian::little) return __builtin_bswap32(n);
  return n;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos) break;
    line.remove_prefix(start);
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return fields;
}

}  // namespace

std::vector<net::Cidr> parse_routes(std::string_view text) {
  constexpr size_t kDestination = 1, kMask = 7;
  std::vector<net::Cidr> routes;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto fields = fields_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (fields.size() <= kMask) continue;
    const auto destination = route_number(fields[kDestination]), mask = route_number(fields[kMask]);
    if (!destination || !mask || *mask == 0) continue;
    routes.push_back({address_of(*destination & *mask), std::popcount(*mask)});
  }
  return routes;
}

net::Cidr choose_subnet(const net::Cidr& pool, const std::vector<net::Cidr>& taken, int prefix) {
  if (!pool.base.is_v4() || pool.prefix > prefix)
    throw Error(Code::invalid, "subnetPool " + net::format(pool) + ": must be an IPv4 range of /" +
                                   std::to_string(prefix) + " or larger");
  const uint64_t first = number_of(pool.base), past = first + size_of(pool.prefix);
  for (uint64_t at = first; at < past;) {
    const net::Cidr candidate{address_of(static_cast<uint32_t>(at)), prefix};
    uint64_t next = at + size_of(prefix);
    bool free = true;
    for (const net::Cidr& t : taken) {
      if (!t.base.is_v4() || !t.overlaps(candidate)) continue;
      free = false;
      // Past the end of what is in the way, however large it is.
      next = std::max(next, (number_of(t.base) & ~(size_of(t.prefix) - 1)) + size_of(t.prefix));
    }
    if (free) return candidate;
    at = next;
  }
  throw Error(Code::conflict, "subnetPool " + net::format(pool) + " has no free /" +
                                  std::to_string(prefix) +
                                  " left: wait for runs to end, or choose a larger pool that "
                                  "overlaps with no route of the engine's host");
}

net::Address host_address(const net::Cidr& subnet, unsigned n) {
  return address_of(number_of(subnet.base) + n);
}

}  // namespace umpteenth::engine
