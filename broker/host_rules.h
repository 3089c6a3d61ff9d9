// Which hosts a run's egress proxy serves. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/net/address.h"
#include "runs/egress.h"

namespace umpteenth::broker {

// Lower case, without one trailing dot, brackets and zone of an IPv6 literal kept. nullopt where
// that is no host: empty, over 253 bytes, bytes that are in no host's name. Non-ASCII passes, and
// is refused by host_refusal with its own text.
std::optional<std::string> normal_host(std::string_view host);

// "" where the host may be reached, else why not.
std::string host_refusal(const runs::EgressGrant& grant, const std::string& normal_host);

// The same for an address: every address that a name has must pass.
bool address_allowed(const runs::EgressGrant& grant, net::Class found);

}  // namespace umpteenth::broker
