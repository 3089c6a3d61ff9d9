// FakeEngine: networks.
#include "base/net/address.h"
#include "tests/support/fake_engine_state.h"

namespace umpteenth::support {

using engine::Labels;

engine::Network& FakeEngine::network(const std::string& id_or_name) {
  for (auto& [id, n] : networks_)
    if (id == id_or_name || n.name == id_or_name) return n;
  throw Error(Code::not_found, "no such network: " + id_or_name);
}

std::string FakeEngine::create_network(const engine::NetworkSpec& spec) {
  const Lock lock = enter("create_network", spec.name);
  const std::string what = "create network \"" + spec.name + "\": ";
  engine::Network n;
  n.subnets = {spec.subnet};
  if (spec.subnet.empty()) n.subnets = {"10.250." + std::to_string(next_ % 250) + ".0/28"};
  const auto wanted = net::parse_cidr(n.subnets[0]);
  if (!wanted) throw Error(Code::invalid, what + "\"" + spec.subnet + "\" is not a subnet");
  for (const auto& [id, other] : networks_) {
    if (other.name == spec.name) throw Error(Code::conflict, what + "the name is in use");
    const auto taken = net::parse_cidr(other.subnets[0]);
    if (taken && taken->overlaps(*wanted))
      throw Error(Code::conflict, what + "its subnet overlaps with " + other.name);
  }
  n.id = new_id();
  n.name = spec.name;
  n.driver = "bridge";
  n.created_at = "2026-01-01T00:00:00Z";
  n.internal = spec.internal;
  n.ipv6 = spec.ipv6;
  n.options = spec.options;
  n.labels = spec.labels;
  if (!spec.gateway.empty()) n.gateways = {spec.gateway};
  const std::string id = n.id;
  networks_[id] = std::move(n);
  emit("network", "create", id, {{"name", spec.name}});
  return id;
}

void FakeEngine::attach(engine::Network& net, FakeContainer& to,
                        const engine::NetworkAttachment& how) {
  if (to.attached.contains(net.id))
    throw Error(Code::conflict, "connect to network \"" + net.name + "\": it is connected already");
  if (to.spec.network_mode == "none")
    throw Error(Code::invalid, "connect to network \"" + net.name + "\": the container has none");
  std::string address = how.ipv4;
  const auto cidr = net::parse_cidr(net.subnets[0]);
  if (!address.empty()) {
    const auto parsed = net::parse_address(address);
    if (!parsed || !cidr->contains(*parsed))
      throw Error(Code::invalid, "connect to network \"" + net.name + "\": address outside of it");
  }
  std::set<std::string> taken;
  for (const auto& [id, c] : containers_)
    if (const auto it = c->attached.find(net.id); it != c->attached.end()) taken.insert(it->second);
  if (taken.contains(address))
    throw Error(Code::conflict, "connect to network \"" + net.name + "\": address in use");
  for (int host = 2; address.empty(); ++host) {
    net::Address candidate = cidr->base;
    candidate.bytes[15] = static_cast<uint8_t>(candidate.bytes[15] + host);
    if (!taken.contains(net::format(candidate))) address = net::format(candidate);
  }
  to.attached[net.id] = address;
  to.seen.networks[net.name] = {net.id, address, "", "02:42:0a:00:00:02"};
  refresh_members(net);
}

// Only running containers are members, as in the engine's answer.
void FakeEngine::refresh_members(engine::Network& net) {
  net.members.clear();
  for (const auto& [id, c] : containers_)
    if (const auto it = c->attached.find(net.id);
        it != c->attached.end() && c->seen.state == "running")
      net.members[id] = {id, it->second};
}

void FakeEngine::remove_network(const std::string& id_or_name) {
  const Lock lock = enter("remove_network", id_or_name);
  std::string id;
  for (const auto& [known, n] : networks_)
    if (known == id_or_name || n.name == id_or_name) id = known;
  if (id.empty()) return;
  const std::string name = networks_[id].name;
  for (const auto& [container_id, c] : containers_) {
    c->attached.erase(id);
    c->seen.networks.erase(name);
  }
  networks_.erase(id);
  emit("network", "destroy", id, {{"name", name}});
}

std::optional<engine::Network> FakeEngine::find_network(const std::string& id_or_name) {
  const Lock lock = enter("find_network", id_or_name);
  for (const auto& [id, n] : networks_)
    if (id == id_or_name || n.name == id_or_name) return n;
  return std::nullopt;
}

std::vector<engine::Network> FakeEngine::list_networks(const Labels& labels) {
  const Lock lock = enter("list_networks", "");
  std::vector<engine::Network> found;
  for (const auto& [id, n] : networks_)
    if (labels_match(n.labels, labels)) {
      found.push_back(n);
      found.back().members.clear();  // the engine's list has none either
    }
  return found;
}

void FakeEngine::connect_network(const std::string& network_name, const std::string& id,
                                 const engine::NetworkAttachment& how) {
  const Lock lock = enter("connect_network", network_name + " " + id);
  engine::Network& net = network(network_name);
  attach(net, container(id), how);
  emit("network", "connect", net.id, {{"name", net.name}, {"container", id}});
}

void FakeEngine::disconnect_network(const std::string& network_name, const std::string& id) {
  const Lock lock = enter("disconnect_network", network_name + " " + id);
  for (auto& [known, net] : networks_) {
    if (known != network_name && net.name != network_name) continue;
    for (const auto& [container_id, c] : containers_) {
      if (container_id != id && c->seen.name != id) continue;
      c->attached.erase(known);
      c->seen.networks.erase(net.name);
    }
    refresh_members(net);
    emit("network", "disconnect", known, {{"name", net.name}, {"container", id}});
  }
}

}  // namespace umpteenth::support
