// Which subnet the next run network gets. Docker's own pools end at about 30 networks, so we choose
// small subnets of our pool and keep clear of what is in use. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "base/net/address.h"

namespace umpteenth::engine {

inline constexpr int kRunSubnetPrefix = 29;  // network, gateway, broker, sandbox, three spare, all

// The destinations in /proc/net/route, without the default route. Lines that make no sense are
// left out: the engine refuses an overlap itself.
std::vector<net::Cidr> parse_routes(std::string_view proc_net_route);

// The first free subnet. Error(invalid) for a pool too small or not IPv4, Error(conflict) where
// every subnet is taken.
net::Cidr choose_subnet(const net::Cidr& pool, const std::vector<net::Cidr>& taken,
                        int prefix = kRunSubnetPrefix);

// The n-th address of a subnet: 1 the gateway, 2 the broker, 3 the sandbox.
net::Address host_address(const net::Cidr& subnet, unsigned n);

}  // namespace umpteenth::engine
