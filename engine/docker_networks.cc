#include <thread>

#include "engine/docker_engine.h"
#include "engine/docker_json.h"

namespace umpteenth::engine {
namespace {

constexpr int kRemoveTries = 6;

std::string network_path(const std::string& id, std::string_view rest = "") {
  return "/networks/" + path_segment(id) + std::string(rest);
}

}  // namespace

std::string DockerEngine::create_network(const NetworkSpec& spec) {
  const std::string what = "create network \"" + spec.name + "\"";
  json::Value made;
  try {
    made = api_->post("/networks/create", network_body(spec));
  } catch (Error& e) {
    if (!spec.subnet.empty()) e.in("subnet " + spec.subnet);
    throw e.in(what);
  }
  const std::string id = made.get_string("Id");
  // Podman makes the network without the options it does not know, and says so here only.
  if (const std::string warning = made.get_string("Warning"); !warning.empty()) {
    remove_network(id);
    throw Error(Code::invalid,
                what + ": the engine warns: " + engine_error(400, warning).message());
  }
  return id;
}

// By the endpoint's name too: after a crash an endpoint may be listed whose container is gone
// (moby#17217).
void DockerEngine::disconnect_members(const std::string& network) {
  const auto v = inspect("networks", network);
  if (!v || !v->get("Containers").is_object()) return;
  for (const json::Member& m : v->get("Containers").members()) {
    disconnect_network(network, m.key);
    if (const std::string name = m.value.get_string("Name"); m.key.starts_with("ep-"))
      disconnect_network(network, name);
  }
}

void DockerEngine::remove_network(const std::string& id) {
  ApiCall call;
  call.method = "DELETE";
  call.path = network_path(id);
  call.also_fine = {404};
  for (int attempt = 1;; ++attempt) {
    try {
      disconnect_members(id);
      api_->send(call);
      return;
    } catch (Error& e) {
      const bool again = e.code() == Code::conflict || e.code() == Code::internal;
      if (!again || attempt == kRemoveTries) throw e.in("remove network " + id.substr(0, 40));
    }
    std::this_thread::sleep_for(Duration{50} * (1 << attempt));
  }
}

std::optional<Network> DockerEngine::find_network(const std::string& id_or_name) {
  const auto v = inspect("networks", id_or_name);
  if (!v) return std::nullopt;
  Network n = network_from(*v);
  if (n.id != id_or_name && n.name != id_or_name) return std::nullopt;
  return n;
}

std::vector<Network> DockerEngine::list_networks(const Labels& labels) {
  std::vector<Network> all;
  const json::Value list = api_->get("/networks", {{"filters", label_filter(labels)}});
  for (const json::Value& v : list.items()) all.push_back(network_from(v));
  return all;
}

void DockerEngine::connect_network(const std::string& network, const std::string& container,
                                   const NetworkAttachment& how) {
  try {
    api_->post(network_path(network, "/connect"), connect_body(container, how));
  } catch (Error& e) {
    throw e.in("connect container " + container.substr(0, 12) + " to network \"" + network + "\"");
  }
}

void DockerEngine::disconnect_network(const std::string& network, const std::string& container) {
  ApiCall call;
  call.method = "POST";
  call.path = network_path(network, "/disconnect");
  call.body = json::Value::object({{"Container", container}, {"Force", true}}).dump();
  call.also_fine = {404};
  try {
    api_->send(call);
  } catch (Error& e) {
    if (e.message().find("is not connected") != std::string::npos) return;
    throw e.in("disconnect container " + container.substr(0, 12));
  }
}

}  // namespace umpteenth::engine
