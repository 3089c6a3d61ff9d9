#include "engine/relay.h"

#include <algorithm>

#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/egress_networks.h"
#include "engine/names.h"
#include "engine/subnets.h"

namespace umpteenth::engine {
namespace {

constexpr unsigned kBrokerHost = 2, kSandboxHost = 3;
constexpr int kSubnetTries = 8;
constexpr char kSocketTarget[] = "/run/umpteenth";
constexpr char kRunNetworkRole[] = "run-network";
constexpr char kRelayRole[] = "relay";

std::string host_of(const Network& network, unsigned n) {
  const auto subnet =
      network.subnets.empty() ? std::nullopt : net::parse_cidr(network.subnets.front());
  if (!subnet || subnet->prefix > kRunSubnetPrefix)
    throw Error(Code::conflict,
                "network \"" + network.name + "\" has no subnet of ours: remove it");
  return net::format(host_address(*subnet, n));
}

std::string label(const Labels& labels, const char* key) {
  const auto it = labels.find(key);
  return it == labels.end() ? "" : it->second;
}

}  // namespace

RunNetworks::RunNetworks(Engine& engine, SandboxImages& images, AttachmentOptions options)
    : engine_(engine), images_(images), options_(std::move(options)) {}

RunNetwork RunNetworks::described(const Network& n) const {
  return {n.id, n.name, n.subnets.front(), host_of(n, kBrokerHost), host_of(n, kSandboxHost)};
}

// A subnet is reserved while its network is being made, so that several are made at once. What the
// engine refuses as overlapping (a route or network that we cannot see) is left out and another
// one is tried.
Network RunNetworks::make_network(const std::string& name, Labels labels) {
  const auto pool = net::parse_cidr(options_.subnet_pool);
  if (!pool)
    throw Error(Code::invalid, "subnetPool \"" + options_.subnet_pool + "\" is not a CIDR");
  NetworkSpec spec;
  spec.name = name;
  spec.internal = true;
  spec.labels = std::move(labels);
  spec.options = {{"com.docker.network.bridge.inhibit_ipv4", "true"},
                  {"com.docker.network.bridge.name", run_bridge(options_.instance, name)}};
  std::vector<net::Cidr> refused;
  for (int attempt = 1;; ++attempt) {
    net::Cidr subnet;
    {
      const std::scoped_lock lock(subnets_mutex_);
      std::vector<net::Cidr> taken;
      if (options_.read_routes) taken = parse_routes(options_.read_routes());
      taken.insert(taken.end(), refused.begin(), refused.end());
      taken.insert(taken.end(), in_flight_.begin(), in_flight_.end());
      for (const Network& n : engine_.list_networks({}))
        for (const std::string& text : n.subnets)
          if (const auto c = net::parse_cidr(text)) taken.push_back(*c);
      subnet = choose_subnet(*pool, taken);
      in_flight_.insert(subnet);
    }
    const Defer release([&] {
      const std::scoped_lock lock(subnets_mutex_);
      in_flight_.erase(subnet);
    });
    spec.subnet = net::format(subnet);
    try {
      const std::string id = engine_.create_network(spec);
      if (const auto made = engine_.find_network(id)) return *made;
      throw Error(Code::not_found, "network \"" + name + "\" vanished after it was made");
    } catch (const Error& e) {
      const bool overlap = e.message().find("overlaps") != std::string::npos;
      if (!overlap || attempt == kSubnetTries) throw;
      refused.push_back(subnet);
    }
  }
}

std::string RunNetworks::ensure_park() {
  // A container without any network cannot be connected to one later; on the default bridge the
  // relay would have a way out that it does not need.
  const std::string name = own_name(options_.instance, "relay");
  if (const auto found = engine_.find_network(name)) return found->name;
  return make_network(name, {{kLabelInstance, options_.instance}, {kLabelRole, kRelayRole}}).name;
}

ContainerSpec RunNetworks::relay_spec() {
  ContainerSpec s;
  s.name = own_name(options_.instance, "relay");
  s.image = images_.ensure_helper();
  s.entrypoint = {kHelperUmpPath, "relay"};
  s.cmd = {"--listen", "0.0.0.0:" + std::to_string(options_.broker_port), "--socket",
           std::string(kSocketTarget) + "/broker.sock"};
  s.user = "65534:65534";
  s.cap_drop = {"ALL"};
  s.cpus = 0.5;
  s.memory_bytes = 64 << 20;
  s.pids = 64;
  s.restart_policy = "unless-stopped";
  s.sysctls = {{"net.ipv4.ip_forward", "0"}};
  if (options_.dns) {
    for (const char* word : {"--dns", "0.0.0.0:53", "--dns-socket", "/run/umpteenth/dns.sock"})
      s.cmd.emplace_back(word);
    s.sysctls["net.ipv4.ip_unprivileged_port_start"] = "53";
  }
  s.mounts = {{options_.socket_folder, kSocketTarget, true}};
  s.network_mode = s.name;
  s.labels = {{kLabelInstance, options_.instance}, {kLabelRole, kRelayRole}};
  json::Value hashed = json::Value::strings(s.cmd);
  for (const std::string& part : {s.image, s.user, options_.socket_folder, std::string("1")})
    hashed.push_back(part);
  s.labels[kLabelSpecHash] = short_hash(hashed.dump(), 16);
  return s;
}

std::string RunNetworks::ensure_relay() {
  const ContainerSpec wanted = relay_spec();
  auto found = engine_.find_container(wanted.name);
  if (found && label(found->labels, kLabelInstance) != options_.instance)
    throw Error(Code::conflict, "container \"" + wanted.name +
                                    "\" has the relay's name and is not ours: remove it");
  const bool differs =
      found && label(found->labels, kLabelSpecHash) != wanted.labels.at(kLabelSpecHash);
  const bool broken = found && (found->state == "dead" || found->state == "removing");
  if (differs || broken) {
    log::info("relay is made anew", {{"reason", differs ? "its spec changed" : "it is broken"}});
    engine_.remove_container(found->id);
    found.reset();
  }
  if (found && found->state == "running") return found->id;
  std::string id;
  if (found) {
    id = found->id;
  } else {
    ensure_park();
    id = engine_.create_container(wanted);
  }
  engine_.start_container(id);
  return id;
}

std::string RunNetworks::ensure_endpoint() {
  const std::scoped_lock lock(relay_mutex_);
  const std::string endpoint =
      options_.own_container.empty() ? ensure_relay() : options_.own_container;
  for (const Network& n : list())
    if (const auto whole = engine_.find_network(n.id)) join(*whole, endpoint);
  return endpoint;
}

// What inspect says decides, not the connect call's answer.
void RunNetworks::join(const Network& network, const std::string& endpoint) {
  const std::string address = host_of(network, kBrokerHost);
  const auto is_there = [&](const Network& n) {
    const auto it = n.members.find(endpoint);
    return it != n.members.end() && it->second.ipv4 == address;
  };
  if (is_there(network)) return;
  if (network.members.contains(endpoint)) engine_.disconnect_network(network.id, endpoint);
  std::string cause;
  try {
    engine_.connect_network(network.id, endpoint, {network.id, address, {"umpteenth"}});
  } catch (const Error& e) {  // another thread may have been first
    if (e.code() != Code::conflict) throw;
    cause = ": " + e.message();
  }
  const auto seen = engine_.find_network(network.id);
  if (!seen || !is_there(*seen))
    throw Error(Code::internal, "the engine reports no address of the broker on network \"" +
                                    network.name + "\"" + cause);
}

RunNetwork RunNetworks::create(const std::string& run_uid, const Labels& labels) {
  const std::string name = own_name(options_.instance, run_uid);
  std::string endpoint;
  {
    const std::scoped_lock lock(relay_mutex_);
    endpoint = options_.own_container.empty() ? ensure_relay() : options_.own_container;
  }
  auto network = engine_.find_network(name);
  if (network) {
    const bool ours = label(network->labels, kLabelInstance) == options_.instance &&
                      label(network->labels, kLabelRun) == run_uid && network->internal &&
                      !network->ipv6;
    if (!ours)
      throw Error(Code::conflict,
                  "network \"" + name + "\" exists and is not this run's: remove it");
  } else {
    Labels all = labels;
    all[kLabelInstance] = options_.instance;
    all[kLabelRun] = run_uid;
    all[kLabelRole] = kRunNetworkRole;
    network = make_network(name, all);
  }
  try {
    join(*network, endpoint);
  } catch (Error& e) {
    engine_.remove_network(network->id);
    throw e.in("connect the broker to network \"" + name + "\"");
  }
  return described(*network);
}

std::optional<RunNetwork> RunNetworks::find(const std::string& run_uid) {
  const auto n = engine_.find_network(own_name(options_.instance, run_uid));
  if (!n || label(n->labels, kLabelInstance) != options_.instance) return std::nullopt;
  return described(*n);
}

void RunNetworks::remove(const std::string& run_uid) {
  engine_.remove_network(own_name(options_.instance, run_uid));
}

std::vector<Network> RunNetworks::list() {
  return engine_.list_networks(
      {{kLabelInstance, options_.instance}, {kLabelRole, kRunNetworkRole}});
}

void RunNetworks::attach(const RunNetwork& network, ContainerSpec& sandbox) {
  sandbox.network_mode.clear();
  sandbox.networks = {{network.name, network.sandbox_address, {}}};
  // Without a server of its own an internal network still resolves public names where the host's
  // resolver is on loopback (CVE-2024-29018).
  sandbox.dns = {"127.0.0.1"};
  sandbox.dns_options = {"timeout:1", "attempts:1"};
  sandbox.extra_hosts.push_back("umpteenth:" + network.broker_address);
}

void RunNetworks::remove_relay() {
  const std::scoped_lock lock(relay_mutex_);
  const std::string name = own_name(options_.instance, "relay");
  engine_.remove_container(name);
  engine_.remove_network(name);
}

}  // namespace umpteenth::engine
