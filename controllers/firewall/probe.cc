#include "controllers/firewall/probe.h"

#include <thread>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/names.h"
#include "engine/sandbox_images.h"

namespace umpteenth::controllers::firewall {
namespace {

constexpr std::chrono::seconds kWithin{30};
constexpr Duration kPoll{20};
constexpr size_t kMostGateways = 40;

engine::ContainerSpec spec_of(const ProbeParams& params) {
  engine::ContainerSpec s;
  s.name = engine::own_name(params.instance, "probe");
  s.image = params.image;
  s.entrypoint = {engine::kHelperUmpPath, "netcheck", "--timeout", "1s", "--unreachable"};
  s.cmd = params.unreachable;
  s.user = "65534:65534";
  s.cap_drop = {"ALL"};
  s.memory_bytes = 32 << 20;
  s.pids = 16;
  s.network_mode = params.network;
  s.labels = {{engine::kLabelInstance, params.instance}, {engine::kLabelRole, "probe"}};
  return s;
}

int wait(engine::Engine& engine, const std::string& id) {
  const auto until = std::chrono::steady_clock::now() + kWithin;
  while (std::chrono::steady_clock::now() < until) {
    const auto c = engine.find_container(id);
    if (!c) throw Error(Code::unavailable, "the probe sandbox was removed");
    if (c->state == "exited" || c->state == "dead") return c->exit_code;
    std::this_thread::sleep_for(kPoll);
  }
  throw Error(Code::timeout, "the probe sandbox did not end");
}

}  // namespace

std::vector<std::string> probe_targets(const std::vector<engine::Network>& networks) {
  std::vector<std::string> targets{"169.254.169.254:80", "100.100.100.200:80", "10.0.0.1:80",
                                   "192.168.0.1:80"};
  for (const engine::Network& n : networks)
    for (const std::string& gateway : n.gateways)
      if (!n.internal && gateway.find(':') == std::string::npos && targets.size() < kMostGateways)
        targets.push_back("icmp:" + gateway);
  return targets;
}

std::string run_probe(engine::Engine& engine, const ProbeParams& params) {
  const engine::ContainerSpec spec = spec_of(params);
  engine.remove_container(spec.name);  // of an umpd that was killed meanwhile
  const std::string id = engine.create_container(spec);
  const Defer remove([&] {
    try {
      engine.remove_container(id);
    } catch (const Error& e) {  // removed before the next probe
      log::warn("probe sandbox not removed", {{"error", log::clip(e.message())}});
    }
  });
  engine.start_container(id);
  const int code = wait(engine, id);
  if (code == 0) return "";
  const std::string said = engine.container_logs(id, 8192);
  std::string reached;
  for (size_t at = 0; at < said.size();) {
    const size_t end = std::min(said.find('\n', at), said.size());
    const std::string line = said.substr(at, end - at);
    if (line.starts_with("reachable ")) reached += (reached.empty() ? "" : ", ") + line.substr(10);
    at = end + 1;
  }
  if (reached.empty())
    throw Error(Code::unavailable,
                "the probe sandbox exited with " + std::to_string(code) + ": " + log::clip(said));
  return reached;
}

}  // namespace umpteenth::controllers::firewall
