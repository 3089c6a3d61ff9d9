// What sandboxes with Internet access may ask, and which answers they get. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/net/address.h"
#include "broker/dns/message.h"

namespace umpteenth::broker::dns {

enum class Fate {
  forward,
  empty,         // AAAA: sandboxes have no IPv6
  no_such_name,  // reverse look-ups, single labels, names of the local network
  refused,       // other types
};
Fate fate_of(const Question& question);

// The first address in an answer that the run may not reach, or nullopt. Looks into A records and
// the hints of HTTPS records.
std::optional<net::Address> refused_address(const Answer& answer, const net::Topology& topology,
                                            bool allow_private);

}  // namespace umpteenth::broker::dns
