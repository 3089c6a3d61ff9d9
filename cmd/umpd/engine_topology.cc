#include "cmd/umpd/engine_topology.h"

#include <set>

#include "apis/sandbox_engine.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/docker.h"

namespace umpteenth::umpd {
namespace {

constexpr std::chrono::seconds kLifetime{30};
constexpr std::chrono::seconds kAgain{2};  // after an engine that did not answer

}  // namespace

net::Topology EngineTopology::now() {
  const std::lock_guard lock(mutex_);
  if (std::chrono::steady_clock::now() >= fresh_until_) refresh();
  return topology_;
}

void EngineTopology::refresh() {
  net::Topology fresh;
  fresh.blocked = blocked_;
  fresh.known = true;
  std::set<std::string> named;
  for (const store::RecordPtr& record : store_.list({"sandboxengines", "", 0, ""}).items) {
    const auto spec = apis::sandbox_engine_spec_from(record->parse().get("spec"));
    // Run networks come and go faster than the engine is asked.
    if (const auto pool = net::parse_cidr(spec.subnet_pool)) fresh.containers.push_back(*pool);
    for (const std::string& text : spec.blocked_targets)
      if (const auto cidr = net::parse_cidr(text)) fresh.blocked.push_back(*cidr);
    if (!named.insert(spec.endpoint).second) continue;
    Known& known = by_endpoint_[spec.endpoint];
    ask(known, spec.endpoint);
    fresh.known = fresh.known && known.answered;
    fresh.containers.insert(fresh.containers.end(), known.subnets.begin(), known.subnets.end());
    fresh.gateways.insert(fresh.gateways.end(), known.gateways.begin(), known.gateways.end());
  }
  std::erase_if(by_endpoint_, [&](const auto& entry) { return !named.contains(entry.first); });
  fresh_until_ = std::chrono::steady_clock::now() + (fresh.known ? kLifetime : kAgain);
  topology_ = std::move(fresh);
}

void EngineTopology::ask(Known& known, const std::string& endpoint) {
  try {
    if (!known.engine) known.engine = engine::make_docker_engine({endpoint, 1});
    std::vector<net::Cidr> subnets;
    std::vector<net::Address> gateways;
    for (const engine::Network& network : known.engine->list_networks({})) {
      for (const std::string& text : network.subnets)
        if (const auto cidr = net::parse_cidr(text)) subnets.push_back(*cidr);
      for (const std::string& text : network.gateways)
        if (const auto address = net::parse_address(text)) gateways.push_back(*address);
    }
    known.subnets = std::move(subnets);
    known.gateways = std::move(gateways);
    known.answered = true;
  } catch (const Error& e) {  // until it answers private addresses are refused
    log::warn("an engine's networks are not known",
              {{"endpoint", endpoint}, {"error", log::clip(e.message())}});
  }
}

}  // namespace umpteenth::umpd
