#include "controllers/run/sandbox.h"

#include "base/error.h"
#include "base/log.h"

namespace umpteenth::controllers::run {
namespace {

// Tidying up after a failure: what cannot be removed now is found by the sweep.
template <typename F>
void quietly(const char* what, const F& f) {
  try {
    f();
  } catch (const Error& e) {
    log::warn("tidying up a sandbox failed", {{"step", what}, {"error", log::clip(e.message())}});
  }
}

bool is_of(const engine::Labels& labels, const SandboxParams& params) {
  auto instance = labels.find(engine::kLabelInstance);
  auto run = labels.find(engine::kLabelRun);
  return instance != labels.end() && instance->second == params.instance && run != labels.end() &&
         run->second == params.run_uid;
}

}  // namespace

Sandbox create_sandbox(EngineHandle& handle, SandboxParams params) {
  engine::Engine& engine = handle.engine();
  Sandbox sandbox;
  if (params.in_namespace) {
    sandbox.network.name = params.open_network;
  } else {
    sandbox.network =
        handle.parts().create_network(params.run_uid, sandbox_labels(params, "run-network"));
    params.network = sandbox.network.name;
    params.broker_ip = sandbox.network.broker_ip;
    params.sandbox_ip = sandbox.network.sandbox_ip;
  }
  try {
    sandbox.container = engine.create_container(container_spec(params));
    engine.start_container(sandbox.container);
    if (params.in_namespace)
      sandbox.door = handle.parts().open_door(params.run_uid, sandbox.container);
  } catch (const Error&) {
    if (!sandbox.container.empty()) {
      quietly("container", [&] { engine.remove_container(sandbox.container); });
    }
    if (!sandbox.network.id.empty()) {
      quietly("network", [&] { handle.parts().remove_network(sandbox.network.id); });
    }
    throw;
  }
  return sandbox;
}

void destroy_sandbox(EngineHandle& handle, const Sandbox& sandbox) {
  if (sandbox.door) sandbox.door->close();
  if (!sandbox.container.empty()) handle.engine().remove_container(sandbox.container);
  if (!sandbox.network.id.empty()) handle.parts().remove_network(sandbox.network.id);
}

void clear_attempt(EngineHandle& handle, const SandboxParams& params) {
  std::string name = sandbox_name(params.instance, params.run_uid);
  engine::Engine& engine = handle.engine();
  auto container = engine.find_container(name);
  if (container && is_of(container->labels, params)) engine.remove_container(container->id);
  for (const auto& network : engine.list_networks(
           {{engine::kLabelInstance, params.instance}, {engine::kLabelRun, params.run_uid}})) {
    handle.parts().remove_network(network.id);
  }
}

bool sandbox_intact(EngineHandle& handle, const Sandbox& sandbox) {
  auto container = handle.engine().find_container(sandbox.container);
  if (!container || (container->state != "running" && container->state != "paused")) return false;
  // Of egress networks the firewall takes care.
  const RunNetwork& network = sandbox.network;
  if (!network.id.empty() && !container->networks.contains(network.name)) return false;
  return sandbox.door || handle.parts().broker_attached(sandbox.network);
}

}  // namespace umpteenth::controllers::run
