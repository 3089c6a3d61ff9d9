#include "engine/docker_json.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace umpteenth::engine {
namespace {

json::Value map_value(const std::map<std::string, std::string>& map) {
  json::Value v = json::Value::object();
  for (const auto& [key, value] : map) v.set(key, value);
  return v;
}

Labels map_from(const json::Value& v) {
  Labels map;
  if (!v.is_object()) return map;
  for (const json::Member& m : v.members())
    if (m.value.is_string()) map[m.key] = m.value.as_string();
  return map;
}

std::vector<std::string> strings_from(const json::Value& v) {
  std::vector<std::string> all;
  if (v.is_string()) all.push_back(v.as_string());
  if (!v.is_array()) return all;
  for (const json::Value& item : v.items())
    if (item.is_string()) all.push_back(item.as_string());
  return all;
}

json::Value endpoint(const NetworkAttachment& how) {
  json::Value v = json::Value::object();
  if (!how.ipv4.empty()) v.set("IPAMConfig", json::Value::object({{"IPv4Address", how.ipv4}}));
  if (!how.aliases.empty()) v.set("Aliases", json::Value::strings(how.aliases));
  return v;
}

std::string network_mode(const ContainerSpec& spec) {
  return spec.networks.empty() ? spec.network_mode : spec.networks.front().network;
}

json::Value host_config(const ContainerSpec& spec) {
  json::Value h = json::Value::object();
  if (!spec.cap_drop.empty()) h.set("CapDrop", json::Value::strings(spec.cap_drop));
  if (!spec.cap_add.empty()) h.set("CapAdd", json::Value::strings(spec.cap_add));
  std::vector<std::string> security = spec.security_options;
  if (spec.no_new_privileges) security.insert(security.begin(), "no-new-privileges");
  if (!security.empty()) h.set("SecurityOpt", json::Value::strings(security));
  if (spec.cpus > 0) h.set("NanoCpus", std::llround(spec.cpus * 1e9));
  if (spec.memory_bytes > 0) {
    h.set("Memory", spec.memory_bytes);
    h.set("MemorySwap", spec.memory_bytes);
  }
  if (spec.pids > 0) h.set("PidsLimit", spec.pids);
  if (spec.disk_bytes > 0)
    h.set("StorageOpt", json::Value::object({{"size", std::to_string(spec.disk_bytes)}}));
  if (!spec.runtime.empty()) h.set("Runtime", spec.runtime);
  if (const std::string mode = network_mode(spec); !mode.empty()) h.set("NetworkMode", mode);
  if (!spec.extra_hosts.empty()) h.set("ExtraHosts", json::Value::strings(spec.extra_hosts));
  if (!spec.dns.empty()) h.set("Dns", json::Value::strings(spec.dns));
  if (!spec.dns_options.empty()) h.set("DnsOptions", json::Value::strings(spec.dns_options));
  if (!spec.sysctls.empty()) h.set("Sysctls", map_value(spec.sysctls));
  if (spec.privileged) h.set("Privileged", true);
  if (spec.host_pid) {
    h.set("PidMode", "host");
    h.set("UsernsMode", "host");
  }
  json::Value mounts = json::Value::array();
  for (const Mount& m : spec.mounts)
    mounts.push_back(json::Value::object(
        {{"Type", "bind"}, {"Source", m.source}, {"Target", m.target}, {"ReadOnly", m.read_only}}));
  if (!mounts.empty()) h.set("Mounts", mounts);
  h.set("RestartPolicy",
        json::Value::object({{"Name", spec.restart_policy.empty() ? "no" : spec.restart_policy}}));
  // What PID 1 prints is kept on the host's disk: bounded.
  h.set("LogConfig",
        json::Value::object(
            {{"Type", "json-file"},
             {"Config", json::Value::object({{"max-size", "1m"}, {"max-file", "1"}})}}));
  return h;
}

// Inside a Dockerfile's double quotes.
std::string in_quotes(const std::string& text) {
  std::string q = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '$') q += '\\';
    q += c;
  }
  return q + "\"";
}

ContainerNetwork container_network(const json::Value& v) {
  ContainerNetwork n;
  n.network_id = v.get_string("NetworkID");
  n.ipv4 = v.get_string("IPAddress");
  n.gateway = v.get_string("Gateway");
  n.mac = v.get_string("MacAddress");
  // Before the start the address is only in what was asked for.
  if (n.ipv4.empty()) n.ipv4 = v.get("IPAMConfig").get_string("IPv4Address");
  return n;
}

std::map<std::string, ContainerNetwork> container_networks(const json::Value& v) {
  std::map<std::string, ContainerNetwork> all;
  const json::Value& networks = v.at_path({"NetworkSettings", "Networks"});
  if (!networks.is_object()) return all;
  for (const json::Member& m : networks.members()) all[m.key] = container_network(m.value);
  return all;
}

std::string without_slash(std::string name) {
  if (name.starts_with('/')) name.erase(0, 1);
  return name;
}

std::string unix_time(const json::Value& seconds) {
  if (!seconds.is_int()) return "";
  return format_time(Time(std::chrono::seconds(seconds.as_int())));
}

std::string plain_arch(const std::string& arch) {
  if (arch == "x86_64") return "amd64";
  if (arch == "aarch64") return "arm64";
  return arch;
}

}  // namespace

json::Value container_body(const ContainerSpec& spec) {
  json::Value b = json::Value::object({{"Image", spec.image}});
  if (!spec.entrypoint.empty()) b.set("Entrypoint", json::Value::strings(spec.entrypoint));
  if (!spec.cmd.empty()) b.set("Cmd", json::Value::strings(spec.cmd));
  if (!spec.env.empty()) b.set("Env", json::Value::strings(spec.env));
  if (!spec.user.empty()) b.set("User", spec.user);
  if (!spec.working_dir.empty()) b.set("WorkingDir", spec.working_dir);
  if (!spec.hostname.empty()) b.set("Hostname", spec.hostname);
  if (!spec.labels.empty()) b.set("Labels", map_value(spec.labels));
  if (spec.disable_healthcheck)
    b.set("Healthcheck", json::Value::object({{"Test", json::Value::array({"NONE"})}}));
  b.set("HostConfig", host_config(spec));
  if (!spec.networks.empty()) {
    json::Value endpoints = json::Value::object();
    endpoints.set(spec.networks.front().network, endpoint(spec.networks.front()));
    b.set("NetworkingConfig", json::Value::object({{"EndpointsConfig", endpoints}}));
  }
  return b;
}

json::Value network_body(const NetworkSpec& spec) {
  json::Value b = json::Value::object({{"Name", spec.name},
                                       {"CheckDuplicate", true},
                                       {"Driver", "bridge"},
                                       {"Internal", spec.internal},
                                       {"EnableIPv6", spec.ipv6},
                                       {"Options", map_value(spec.options)},
                                       {"Labels", map_value(spec.labels)}});
  if (!spec.subnet.empty()) {
    json::Value pool = json::Value::object({{"Subnet", spec.subnet}});
    if (!spec.gateway.empty()) pool.set("Gateway", spec.gateway);
    b.set("IPAM", json::Value::object({{"Config", json::Value::array({pool})}}));
  }
  return b;
}

json::Value connect_body(const std::string& container, const NetworkAttachment& how) {
  return json::Value::object({{"Container", container}, {"EndpointConfig", endpoint(how)}});
}

json::Value exec_body(const ExecSpec& spec) {
  json::Value b = json::Value::object({{"Cmd", json::Value::strings(spec.argv)},
                                       {"AttachStdin", spec.attach_stdin},
                                       {"AttachStdout", true},
                                       {"AttachStderr", true},
                                       {"Tty", false}});
  if (!spec.env.empty()) b.set("Env", json::Value::strings(spec.env));
  if (!spec.user.empty()) b.set("User", spec.user);
  if (!spec.working_dir.empty()) b.set("WorkingDir", spec.working_dir);
  return b;
}

std::string label_filter(const Labels& labels) {
  json::Value wanted = json::Value::array();
  for (const auto& [key, value] : labels) wanted.push_back(value.empty() ? key : key + "=" + value);
  return json::Value::object({{"label", wanted}}).dump();
}

std::vector<std::string> change_lines(const ImageChanges& changes) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : changes.labels)
    lines.push_back("LABEL " + in_quotes(key) + "=" + in_quotes(value));
  for (const std::string& e : changes.env) {
    const size_t equals = std::min(e.find('='), e.size());
    lines.push_back("ENV " + e.substr(0, equals) + "=" +
                    in_quotes(e.substr(std::min(equals + 1, e.size()))));
  }
  if (!changes.user.empty()) lines.push_back("USER " + changes.user);
  if (!changes.working_dir.empty()) lines.push_back("WORKDIR " + changes.working_dir);
  if (!changes.entrypoint.empty())
    lines.push_back("ENTRYPOINT " + json::Value::strings(changes.entrypoint).dump());
  if (!changes.cmd.empty()) lines.push_back("CMD " + json::Value::strings(changes.cmd).dump());
  return lines;
}

Container container_from_inspect(const json::Value& v) {
  Container c;
  const json::Value& state = v.get("State");
  c.id = v.get_string("Id");
  c.name = without_slash(v.get_string("Name"));
  c.image_id = v.get_string("Image");
  c.image = v.get("Config").get_string("Image");
  c.hostname = v.get("Config").get_string("Hostname");
  c.labels = map_from(v.get("Config").get("Labels"));
  c.state = state.get_string("Status");
  c.pid = state.get_int("Pid");
  c.exit_code = static_cast<int>(state.get_int("ExitCode"));
  c.oom_killed = state.get_bool("OOMKilled");
  c.started_at = state.get_string("StartedAt");
  c.created_at = v.get_string("Created");
  c.networks = container_networks(v);
  return c;
}

Container container_from_list(const json::Value& v) {
  Container c;
  const std::vector<std::string> names = strings_from(v.get("Names"));
  c.id = v.get_string("Id");
  c.name = names.empty() ? "" : without_slash(names.front());
  c.image_id = v.get_string("ImageID");
  c.image = v.get_string("Image");
  c.labels = map_from(v.get("Labels"));
  c.state = v.get_string("State");
  c.created_at = unix_time(v.get("Created"));
  c.networks = container_networks(v);
  return c;
}

Network network_from(const json::Value& v) {
  Network n;
  n.id = v.get_string("Id");
  n.name = v.get_string("Name");
  n.driver = v.get_string("Driver");
  n.created_at = v.get_string("Created");
  n.internal = v.get_bool("Internal");
  n.ipv6 = v.get_bool("EnableIPv6");
  n.options = map_from(v.get("Options"));
  n.labels = map_from(v.get("Labels"));
  const json::Value& pools = v.at_path({"IPAM", "Config"});
  if (pools.is_array())
    for (const json::Value& pool : pools.items()) {
      if (const std::string s = pool.get_string("Subnet"); !s.empty()) n.subnets.push_back(s);
      if (const std::string g = pool.get_string("Gateway"); !g.empty()) n.gateways.push_back(g);
    }
  const json::Value& members = v.get("Containers");
  if (members.is_object())
    for (const json::Member& m : members.members()) {
      const std::string address = m.value.get_string("IPv4Address");
      n.members[m.key] = {m.key, address.substr(0, address.find('/'))};
    }
  return n;
}

Image image_from_inspect(const json::Value& v) {
  Image i;
  const json::Value& config = v.get("Config");
  i.id = v.get_string("Id");
  if (!i.id.empty() && !i.id.starts_with("sha256:")) i.id = "sha256:" + i.id;  // Podman
  i.tags = strings_from(v.get("RepoTags"));
  i.digests = strings_from(v.get("RepoDigests"));
  i.arch = plain_arch(v.get_string("Architecture"));
  i.os = v.get_string("Os");
  i.size = v.get_int("Size");
  i.labels = map_from(config.get("Labels"));
  i.user = config.get_string("User");
  i.entrypoint = strings_from(config.get("Entrypoint"));
  i.cmd = strings_from(config.get("Cmd"));
  i.env = strings_from(config.get("Env"));
  const std::vector<std::string> check = strings_from(config.get("Healthcheck").get("Test"));
  i.has_healthcheck = !check.empty() && check.front() != "NONE";
  i.created_at = v.get_string("Created");
  return i;
}

Image image_from_list(const json::Value& v) {
  Image i;
  i.id = v.get_string("Id");
  i.tags = strings_from(v.get("RepoTags"));
  std::erase(i.tags, "<none>:<none>");
  i.digests = strings_from(v.get("RepoDigests"));
  i.size = v.get_int("Size");
  i.labels = map_from(v.get("Labels"));
  i.created_at = unix_time(v.get("Created"));
  return i;
}

Info info_from(const json::Value& info, const json::Value& version) {
  Info i;
  const json::Value& parts = version.get("Components");
  const std::string name = parts.is_array() && !parts.empty()
                               ? parts.items().front().get_string("Name")
                               : version.get_string("Engine");
  i.engine = name.find("Podman") != std::string::npos ? "Podman" : "Docker";
  i.version = version.get_string("Version");
  i.api_version = version.get_string("ApiVersion");
  i.arch = plain_arch(info.get_string("Architecture"));
  i.os = info.get_string("OSType");
  i.id = info.get_string("ID");
  i.default_runtime = info.get_string("DefaultRuntime");
  if (const json::Value& runtimes = info.get("Runtimes"); runtimes.is_object())
    for (const json::Member& m : runtimes.members()) i.runtimes.push_back(m.key);
  i.cgroup_version = info.get_string("CgroupVersion", "1");
  i.storage_driver = info.get_string("Driver");
  i.memory_bytes = info.get_int("MemTotal");
  i.cpus = static_cast<int>(info.get_int("NCPU"));
  return i;
}

EngineEvent event_from(const json::Value& v) {
  const json::Value& actor = v.get("Actor");
  return {v.get_string("Type"), v.get_string("Action"), actor.get_string("ID"),
          map_from(actor.get("Attributes"))};
}

bool names_image(const Image& image, const std::string& reference) {
  const bool hex =
      reference.size() < 64 && reference.find_first_not_of("0123456789abcdef") == std::string::npos;
  const auto known = [&](const std::string& name) {
    return std::find(image.tags.begin(), image.tags.end(), name) != image.tags.end();
  };
  if (reference.starts_with("sha256:")) return image.id == reference;
  return !hex || known(reference) || known(reference + ":latest");
}

bool labels_match(const Labels& have, const Labels& want) {
  return std::all_of(want.begin(), want.end(), [&](const auto& w) {
    const auto it = have.find(w.first);
    return it != have.end() && (w.second.empty() || it->second == w.second);
  });
}

}  // namespace umpteenth::engine
