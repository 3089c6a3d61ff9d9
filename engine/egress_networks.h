// The bridges of sandboxes with Internet access: `ump-egress`, and `ump-egress-private` for jobs
// with allowPrivateNetwork. They keep sandboxes apart (icc off) and have no IPv6. On an engine that
// another installation uses too, names end in `-<8 hex of the instance>`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/firewall/rules.h"

namespace umpteenth::engine {

inline constexpr char kEgressRole[] = "egress";

// Reach is internet or internet_private.
std::string egress_name(firewall::Reach reach);

// The instance's own among the engine's networks; null where it has none.
const Network* find_egress(const std::vector<Network>& networks, const std::string& instance,
                           firewall::Reach reach);
// As it is to be made; its name is the plain one unless that is somebody else's.
NetworkSpec egress_spec(const std::vector<Network>& networks, const std::string& instance,
                        firewall::Reach reach);
// What is wrong with it, or "".
std::string egress_fault(const Network& network);
// Two installations may make one of the plain name in the same moment, and the engine starts
// nothing on a name that is there twice: all but the oldest give way, to the name with their
// instance.
bool gives_way(const Network& network, const std::vector<Network>& networks);

// The network's interface on the host.
std::string bridge_of(const Network& network);

// Makes it where it is absent. Error(invalid) for one that lets sandboxes reach each other.
Network ensure_egress_network(Engine& engine, const std::string& instance, firewall::Reach reach);

// The interfaces of an instance's run networks: a prefix, and each one's name.
std::string run_bridge_prefix(std::string_view instance);
std::string run_bridge(std::string_view instance, std::string_view network_name);

}  // namespace umpteenth::engine
