#include "broker/dns/policy.h"

#include <algorithm>
#include <cstring>

namespace umpteenth::broker::dns {
namespace {

constexpr uint16_t kIpv4Hint = 4;

// Names that are only for the local network or for nobody (RFC 6303, 6761, 6762, 7686, 8375).
constexpr std::string_view kLocal[] = {"local", "internal",  "localhost",    "invalid",
                                       "onion", "home.arpa", "in-addr.arpa", "ip6.arpa"};

bool below(std::string_view name, std::string_view zone) {
  return name == zone || (name.ends_with(zone) && name[name.size() - zone.size() - 1] == '.');
}

net::Address ipv4(std::string_view four) {
  net::Address a;
  a.bytes[10] = a.bytes[11] = 0xFF;
  std::memcpy(a.bytes.data() + 12, four.data(), 4);
  return a;
}

// Parsed before: lengths fit.
std::vector<net::Address> hints(const std::string& https) {
  std::vector<net::Address> all;
  size_t at = 2;
  while (https[at] != 0) at += static_cast<uint8_t>(https[at]) + 1U;
  const auto word = [&](size_t i) {
    return static_cast<size_t>((static_cast<uint8_t>(https[i]) << 8) |
                               static_cast<uint8_t>(https[i + 1]));
  };
  for (++at; at + 4 <= https.size();) {
    const size_t key = word(at), length = word(at + 2);
    at += 4;
    if (key == kIpv4Hint)
      for (size_t i = 0; i + 4 <= length; i += 4) all.push_back(ipv4(https.substr(at + i, 4)));
    at += length;
  }
  return all;
}

bool allowed(net::Class c, bool allow_private) {
  return c == net::Class::is_public || (allow_private && c == net::Class::private_range);
}

}  // namespace

Fate fate_of(const Question& question) {
  const std::string name = question.name();
  if (name.find('.') == std::string::npos) return Fate::no_such_name;
  if (std::ranges::any_of(kLocal, [&](std::string_view zone) { return below(name, zone); }))
    return Fate::no_such_name;
  switch (question.type) {
    case kA:
    case kCname:
    case kMx:
    case kTxt:
    case kSrv:
    case kHttps:
      return Fate::forward;
    case kAaaa:
      return Fate::empty;
    case kPtr:
      return Fate::no_such_name;
    default:
      return Fate::refused;
  }
}

std::optional<net::Address> refused_address(const Answer& answer, const net::Topology& topology,
                                            bool allow_private) {
  for (const Record& r : answer.records) {
    std::vector<net::Address> addresses;
    if (r.type == kA) addresses.push_back(ipv4(r.data));
    if (r.type == kHttps) addresses = hints(r.data);
    for (const net::Address& a : addresses)
      if (!allowed(net::classify(a, topology), allow_private)) return a;
  }
  return std::nullopt;
}

}  // namespace umpteenth::broker::dns
