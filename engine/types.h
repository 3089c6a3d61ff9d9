// What a container engine is told and what it reports. Plain, comparable, printable structs; the
// names are Docker Engine API's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace umpteenth::engine {

using Labels = std::map<std::string, std::string>;

// Labels on all that is ours.
inline constexpr char kLabelInstance[] = "umpteenth.instance";
inline constexpr char kLabelRole[] =
    "umpteenth.role";  // sandbox | relay | run-network | egress | …
inline constexpr char kLabelRun[] = "umpteenth.run";  // the run's uid
inline constexpr char kLabelRunName[] = "umpteenth.run-name";
inline constexpr char kLabelJob[] = "umpteenth.job";
inline constexpr char kLabelWorkspace[] = "umpteenth.workspace";
inline constexpr char kLabelSpecHash[] = "umpteenth.spec-hash";
inline constexpr char kLabelExpires[] = "umpteenth.expires";  // RFC 3339

struct Info {
  std::string engine;  // "Docker", "Podman"
  std::string version;
  std::string api_version;
  std::string arch;  // amd64, arm64
  std::string os;
  std::string id;  // the engine's own
  std::string default_runtime;
  std::vector<std::string> runtimes;
  std::string cgroup_version;
  std::string storage_driver;
  bool disk_limit = false;  // ContainerSpec::disk_bytes is enforced
  int64_t memory_bytes = 0;
  int cpus = 0;
};

struct NetworkAttachment {
  std::string network;  // name or id
  std::string ipv4;     // static address; "" = the engine picks
  std::vector<std::string> aliases;
  bool operator==(const NetworkAttachment&) const = default;
};

struct Mount {  // bind
  std::string source, target;
  bool read_only = true;
  bool operator==(const Mount&) const = default;
};

struct ContainerSpec {
  std::string name;
  std::string image;  // id or name
  std::vector<std::string> entrypoint;
  std::vector<std::string> cmd;
  std::vector<std::string> env;  // never a secret: every exec inherits it
  std::string user;
  std::string working_dir;
  std::string hostname;
  Labels labels;
  std::vector<std::string> cap_drop, cap_add;
  bool no_new_privileges = true;
  std::vector<std::string> security_options;  // besides it: seccomp=…, apparmor=…, label=…
  bool disable_healthcheck = true;
  double cpus = 0;
  int64_t memory_bytes = 0;  // memory and swap: no swap
  int64_t pids = 0;
  int64_t disk_bytes = 0;  // of the writable layer; 0 = no limit. Only where Info::disk_limit
  std::string runtime;
  std::string network_mode;  // "none", "host", a network's name; used with `networks` empty
  std::vector<NetworkAttachment> networks;  // the first at creation, the others connected after
  std::vector<std::string> extra_hosts;     // name:ip
  std::vector<std::string> dns, dns_options;
  std::vector<Mount> mounts;
  std::map<std::string, std::string> sysctls;
  bool privileged = false;
  bool host_pid = false;       // and the host's user namespace
  std::string restart_policy;  // "" = no
  bool operator==(const ContainerSpec&) const = default;
};

struct ContainerNetwork {
  std::string network_id, ipv4, gateway, mac;
  bool operator==(const ContainerNetwork&) const = default;
};

struct Container {
  std::string id, name, image_id, image;
  Labels labels;
  std::string state;  // created running paused restarting removing exited dead
  int64_t pid = 0;
  int exit_code = 0;
  bool oom_killed = false;
  std::string started_at, created_at;
  std::string hostname;  // only from find
  std::map<std::string, ContainerNetwork>
      networks;  // by network name; empty in lists of old engines
  bool operator==(const Container&) const = default;
};

struct NetworkSpec {
  std::string name;
  bool internal = false;
  bool ipv6 = false;
  std::string subnet;  // CIDR, "" = the engine picks
  std::string gateway;
  std::map<std::string, std::string> options;
  Labels labels;
  bool operator==(const NetworkSpec&) const = default;
};

struct NetworkMember {
  std::string container_id, ipv4;  // ipv4 without the prefix length
  bool operator==(const NetworkMember&) const = default;
};

struct Network {
  std::string id, name, driver, created_at;
  bool internal = false;
  bool ipv6 = false;
  std::vector<std::string> subnets, gateways;
  std::map<std::string, std::string> options;
  Labels labels;
  std::map<std::string, NetworkMember> members;  // by container id; only from inspect
  bool operator==(const Network&) const = default;
};

struct Image {
  std::string id;  // sha256:…
  std::vector<std::string> tags, digests;
  std::string arch, os;
  int64_t size = 0;
  Labels labels;
  std::string user;
  std::vector<std::string> entrypoint, cmd, env;
  bool has_healthcheck = false;
  std::string created_at;
};

struct ImageChanges {  // of commit and import
  Labels labels;
  std::vector<std::string> entrypoint, cmd, env;
  std::string user, working_dir;
  std::string arch;  // import: the platform, "" = the engine's
};

struct EngineEvent {
  std::string type;    // container, network, image
  std::string action;  // start, die, destroy, remove, oom, connect, disconnect, create…
  std::string id;
  Labels attributes;  // labels among them
};

}  // namespace umpteenth::engine
