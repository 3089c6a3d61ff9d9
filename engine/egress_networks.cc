#include "engine/egress_networks.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "engine/names.h"

namespace umpteenth::engine {
namespace {

constexpr char kIcc[] = "com.docker.network.bridge.enable_icc";
constexpr char kBridgeName[] = "com.docker.network.bridge.name";

std::string text_at(const std::map<std::string, std::string>& map, const char* key) {
  const auto it = map.find(key);
  return it == map.end() ? "" : it->second;
}

bool ours(const Network& n, const std::string& instance) {
  return text_at(n.labels, kLabelInstance) == instance &&
         text_at(n.labels, kLabelRole) == kEgressRole;
}

}  // namespace

std::string egress_name(firewall::Reach reach) {
  return reach == firewall::Reach::internet_private ? "ump-egress-private" : "ump-egress";
}

const Network* find_egress(const std::vector<Network>& networks, const std::string& instance,
                           firewall::Reach reach) {
  const std::string name = egress_name(reach);
  for (const std::string& candidate : {name, name + "-" + short_hash(instance, 8)})
    for (const Network& n : networks)
      if (n.name == candidate && ours(n, instance)) return &n;
  return nullptr;
}

NetworkSpec egress_spec(const std::vector<Network>& networks, const std::string& instance,
                        firewall::Reach reach) {
  NetworkSpec spec;
  spec.name = egress_name(reach);
  if (std::ranges::any_of(networks, [&](const Network& n) { return n.name == spec.name; }))
    spec.name += "-" + short_hash(instance, 8);
  spec.options = {{kIcc, "false"}};
  spec.labels = {{kLabelInstance, instance}, {kLabelRole, kEgressRole}};
  return spec;
}

std::string egress_fault(const Network& n) {
  if (text_at(n.options, kIcc) != "false") return "lets sandboxes reach each other";
  if (n.ipv6) return "has IPv6";
  if (n.internal) return "is internal";
  return "";
}

bool gives_way(const Network& n, const std::vector<Network>& networks) {
  return std::ranges::any_of(networks, [&](const Network& other) {
    return other.name == n.name && other.id != n.id &&
           std::tie(other.created_at, other.id) < std::tie(n.created_at, n.id);
  });
}

std::string bridge_of(const Network& n) {
  const std::string name = text_at(n.options, kBridgeName);
  return name.empty() ? "br-" + n.id.substr(0, 12) : name;
}

Network ensure_egress_network(Engine& engine, const std::string& instance, firewall::Reach reach) {
  std::vector<Network> networks = engine.list_networks({});
  const Network* there = find_egress(networks, instance, reach);
  for (int attempt = 0; attempt < 2 && (!there || gives_way(*there, networks)); ++attempt) {
    if (there) {
      const std::string id = there->id;
      engine.remove_network(id);
      std::erase_if(networks, [&](const Network& n) { return n.id == id; });
    }
    try {
      engine.create_network(egress_spec(networks, instance, reach));
    } catch (const Error& e) {  // another run made it in this moment
      if (e.code() != Code::conflict && e.code() != Code::already_exists) throw;
    }
    networks = engine.list_networks({});
    there = find_egress(networks, instance, reach);
  }
  if (!there)
    throw Error(Code::conflict,
                "network " + egress_name(reach) + " is not there after it was made");
  if (const std::string fault = egress_fault(*there); !fault.empty())
    throw Error(Code::invalid, "the existing network " + there->name + " " + fault +
                                   "; remove it so it can be recreated");
  return *there;
}

std::string run_bridge_prefix(std::string_view instance) { return "ur" + short_hash(instance, 5); }

std::string run_bridge(std::string_view instance, std::string_view network_name) {
  return run_bridge_prefix(instance) + short_hash(network_name, 8);
}

}  // namespace umpteenth::engine
