// The `network` attachment: each run has an internal network of its own whose only other member is
// the broker's endpoint with a static address. The endpoint is umpd's own container, or a relay
// container that hands connections to umpd's Unix socket behind PROXY v2 headers.
//
// The relay runs as uid 65534: the socket's folder must be 0755 and the socket 0666 in it, inside a
// folder that others cannot enter (umpd's data folder is 0700).
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/address.h"
#include "engine/engine.h"
#include "engine/sandbox_images.h"

namespace umpteenth::engine {

struct RunNetwork {
  std::string id, name, subnet;
  std::string broker_address;  // where the sandbox reaches the broker: its token's endpoint
  std::string sandbox_address;
  bool operator==(const RunNetwork&) const = default;
};

struct AttachmentOptions {
  std::string instance;
  std::string subnet_pool = "10.201.0.0/16";
  std::string socket_folder;  // on the engine's host; holds broker.sock
  std::string own_container;  // umpd's own id: it is the endpoint then, and there is no relay
  int broker_port = 8081;
  bool dns = false;  // dns.sock is in that folder too: the endpoint answers on port 53
  std::function<std::string()> read_routes;  // /proc/net/route of the engine's host, "" unknown
};

class RunNetworks {
 public:
  RunNetworks(Engine& engine, SandboxImages& images, AttachmentOptions options);

  // The endpoint's container, up and a member of every run network of ours. A relay that differs
  // from what is wanted is made anew.
  std::string ensure_endpoint();

  // The run's network with the endpoint in it, confirmed by what the engine reports. Idempotent:
  // a network of that run is taken up again. labels: the run's (kLabelRun and others).
  RunNetwork create(const std::string& run_uid, const Labels& labels);
  std::optional<RunNetwork> find(const std::string& run_uid);
  void remove(const std::string& run_uid);  // gone is success
  // Our run networks, complete or an error.
  std::vector<Network> list();

  // What the sandbox's container needs to be in the network and to know where the broker is.
  static void attach(const RunNetwork& network, ContainerSpec& sandbox);

  void remove_relay();  // when umpd leaves for good

 private:
  ContainerSpec relay_spec();
  std::string ensure_relay();
  std::string ensure_park();
  Network make_network(const std::string& name, Labels labels);
  void join(const Network& network, const std::string& endpoint);
  RunNetwork described(const Network& network) const;

  Engine& engine_;
  SandboxImages& images_;
  const AttachmentOptions options_;
  std::mutex relay_mutex_;
  std::mutex subnets_mutex_;
  std::set<net::Cidr> in_flight_;  // chosen, not yet in the engine's list
};

// umpd's own container where it runs in one on this engine. Candidates are the container whose
// files are mounted over our /etc/hostname, /etc/hosts or /etc/resolv.conf (/proc/self/mountinfo),
// the one that names our cgroup (/proc/self/cgroup), and the hostname; the engine must know a
// running container of that id with our hostname.
std::vector<std::string> container_id_candidates(std::string_view mountinfo,
                                                 std::string_view cgroup,
                                                 std::string_view hostname);
std::optional<std::string> find_own_container(Engine& engine, std::string_view mountinfo,
                                              std::string_view cgroup, std::string_view hostname);

}  // namespace umpteenth::engine
