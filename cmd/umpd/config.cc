#include "cmd/umpd/config.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>
#include <variant>

#include "apis/yaml.h"
#include "apis/yaml_lines.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/net/address.h"

namespace umpteenth::umpd {
namespace {

using Text = std::string& (*)(Config&);
using Number = int64_t& (*)(Config&);
using Flag = bool& (*)(Config&);
using List = std::vector<std::string>& (*)(Config&);

struct Option {
  const char* path;
  const char* fallback;  // as documented
  const char* meaning;
  std::variant<Text, Number, Flag, List> field;
  std::vector<std::string> allowed = {};  // of a text, empty = any
  int64_t least = 0, most = 0;            // of a number
};

const std::vector<Option>& options() {
  static const std::vector<Option> table{
      {"app.url", "https://HOST:PORT",
       "The address people use; its host is put in the certificate.",
       Text([](Config& c) -> std::string& { return c.app.url; })},
      {"app.encryption_key", "generated",
       "Master key that seals secrets, at least 16 bytes. Without it one is made in "
       "`DATA/encryption.key` (0600): back it up.",
       Text([](Config& c) -> std::string& { return c.app.encryption_key; })},
      {"app.data_dir", "data", "Where umpd keeps everything (0700). Flag `--data-dir`.",
       Text([](Config& c) -> std::string& { return c.app.data_dir; })},
      {"server.host", "127.0.0.1", "Address of the API. Flag `--host`.",
       Text([](Config& c) -> std::string& { return c.server.host; })},
      {"server.port",
       "8080",
       "Port of the API, 0 = any free one. Flag `--port`.",
       Number([](Config& c) -> int64_t& { return c.server.port; }),
       {},
       0,
       65535},
      {"server.broker_port",
       "8081",
       "Port on which a sandbox finds the broker; never published. Flag `--broker-port`.",
       Number([](Config& c) -> int64_t& { return c.server.broker_port; }),
       {},
       1,
       65535},
      {"server.trust_proxy", "false",
       "Whether the last X-Forwarded-For entry names the client. Only behind a proxy of yours. So "
       "far "
       "nothing that umpd does depends on a client's address.",
       Flag([](Config& c) -> bool& { return c.server.trust_proxy; })},
      {"server.tls.mode",
       "self",
       "`self`: own CA and certificate, renewed by umpd. `files`: cert and key below. `off`: plain "
       "HTTP, only on a loopback host or a Unix socket.",
       Text([](Config& c) -> std::string& { return c.server.tls_mode; }),
       {"self", "files", "off"}},
      {"server.tls.cert", "", "PEM file with the chain, for mode files.",
       Text([](Config& c) -> std::string& { return c.server.tls_cert; })},
      {"server.tls.key", "", "PEM file with the private key, for mode files.",
       Text([](Config& c) -> std::string& { return c.server.tls_key; })},
      {"log.level",
       "info",
       "debug, info, warn or error.",
       Text([](Config& c) -> std::string& { return c.log.level; }),
       {"debug", "info", "warn", "error"}},
      {"log.json", "false", "One JSON object a line.",
       Flag([](Config& c) -> bool& { return c.log.json; })},
      {"engine.endpoint", "unix:///var/run/docker.sock",
       "The container engine's API. Seeds SandboxEngine/default. Flag `--engine`.",
       Text([](Config& c) -> std::string& { return c.engine.endpoint; })},
      {"sandbox.image", "", "Default image of sandboxes. Seeds SandboxEngine/default.",
       Text([](Config& c) -> std::string& { return c.sandbox.image; })},
      {"sandbox.egress_filter",
       "auto",
       "auto, required or off: what happens to Internet runs without the egress firewall. Seeds "
       "SandboxEngine/default.",
       Text([](Config& c) -> std::string& { return c.sandbox.egress_filter; }),
       {"auto", "required", "off"}},
      {"sandbox.dns", "", "Upstream resolver of Internet sandboxes, an address; \"\" = the host's.",
       Text([](Config& c) -> std::string& { return c.sandbox.dns; })},
      {"network.allow_private_targets", "true",
       "Whether umpd's own calls (model APIs, webhooks) may reach private addresses.",
       Flag([](Config& c) -> bool& { return c.network.allow_private_targets; })},
      {"network.blocked_targets", "[]", "CIDRs that neither umpd nor a sandbox may reach.",
       List([](Config& c) -> std::vector<std::string>& { return c.network.blocked_targets; })},
      {"runs.max_concurrent",
       "3",
       "Runs at once of a workspace. Seeds Workspace/default.",
       Number([](Config& c) -> int64_t& { return c.runs.max_concurrent; }),
       {},
       1,
       1000},
      {"runs.retention_days",
       "90",
       "Days that timelines and artifacts are kept. Seeds Workspace/default.",
       Number([](Config& c) -> int64_t& { return c.runs.retention_days; }),
       {},
       1,
       3650},
      {"git.file_roots", "[]",
       "Folders below which a GitSource may use file URLs. Of no effect for other kinds.",
       List([](Config& c) -> std::vector<std::string>& { return c.git.file_roots; })},
  };
  return table;
}

const Option* find_option(std::string_view path) {
  for (const Option& o : options())
    if (o.path == path) return &o;
  return nullptr;
}

std::vector<std::string> option_paths() {
  std::vector<std::string> paths;
  for (const Option& o : options()) paths.emplace_back(o.path);
  return paths;
}

std::string env_name(std::string_view path) {
  std::string name(path);
  for (char& c : name)
    c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

// Options that must not be shown back.
std::string shown(const Option& option, const std::string& value) {
  return std::string_view(option.path) == "app.encryption_key" ? "(hidden)" : json::quote(value);
}

[[noreturn]] void refuse(const std::string& where, const Option& option, const std::string& value,
                         const std::string& rule) {
  throw Error(Code::invalid,
              where + ": " + option.path + " is " + shown(option, value) + ", it must be " + rule);
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const size_t first = item.find_first_not_of(" \t\n"), last = item.find_last_not_of(" \t\n");
    if (first != std::string::npos) items.push_back(item.substr(first, last - first + 1));
  }
  return items;
}

void set_from_text(Config& config, const Option& option, const std::string& value,
                   const std::string& where) {
  if (const Text* text = std::get_if<Text>(&option.field)) {
    const auto& allowed = option.allowed;
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
      if (std::string_view(option.path) == "log.level")
        throw Error(Code::invalid, where + ": unknown log.level (LOG_LEVEL) " + json::quote(value) +
                                       ", use debug, info, warn or error");
      std::string rule = "one of";
      for (const std::string& a : allowed) rule += " " + a;
      refuse(where, option, value, rule);
    }
    (*text)(config) = value;
  } else if (const Number* number = std::get_if<Number>(&option.field)) {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (error != std::errc() || end != value.data() + value.size() || n < option.least ||
        n > option.most)
      refuse(where, option, value,
             "a whole number from " + std::to_string(option.least) + " to " +
                 std::to_string(option.most));
    (*number)(config) = n;
  } else if (const Flag* flag = std::get_if<Flag>(&option.field)) {
    if (value != "true" && value != "false") refuse(where, option, value, "true or false");
    (*flag)(config) = value == "true";
  } else {
    std::get<List>(option.field)(config) = split_list(value);
  }
}

void set_from_json(Config& config, const Option& option, const json::Value& value,
                   const std::string& where) {
  if (const List* list = std::get_if<List>(&option.field)) {
    if (!value.is_array()) refuse(where, option, value.dump(), "a list of strings");
    std::vector<std::string>& target = (*list)(config);
    target.clear();
    for (const json::Value& item : value.items()) {
      if (!item.is_string()) refuse(where, option, value.dump(), "a list of strings");
      target.push_back(item.as_string());
    }
    return;
  }
  if (value.is_null()) return;
  if (value.is_array() || value.is_object()) refuse(where, option, value.dump(), "a single value");
  set_from_text(config, option, value.is_string() ? value.as_string() : value.dump(), where);
}

void read_file_text(Config& config, const ConfigSources& sources) {
  try {
    const auto documents = apis::parse_yaml(sources.file_text);
    if (documents.empty()) return;  // nothing but comments
    const json::Value root = apis::parse_yaml_one(sources.file_text);
    for (const apis::YamlKey& key : apis::yaml_keys(sources.file_text)) {
      const std::string where = sources.file_name + ": line " + std::to_string(key.line);
      const Option* option = find_option(key.path);
      const std::string prefix = key.path + ".";
      const bool section = std::any_of(options().begin(), options().end(), [&](const Option& o) {
        return std::string_view(o.path).starts_with(prefix);
      });
      if (!option && section) {
        if (key.leaf && !root.is_null()) {
          const json::Value& v = root.get(key.path);
          if (!v.is_null())
            throw Error(Code::invalid, where + ": " + key.path + " must be a mapping of options");
        }
        continue;
      }
      if (!option)
        throw Error(Code::invalid, where + ": unknown option " + key.path +
                                       did_you_mean(key.path, option_paths()));
      const json::Value* value = &root;
      std::istringstream steps(key.path);
      for (std::string step; value && std::getline(steps, step, '.');) value = value->find(step);
      if (!value) continue;
      set_from_json(config, *option, *value, where);
      config.given.push_back(key.path);
    }
  } catch (Error& e) {
    if (e.code() == Code::invalid) throw;
    throw e.in(sources.file_name);
  }
}

void read_environment(Config& config, const Environment& environment) {
  for (const Option& option : options()) {
    const std::string name = env_name(option.path);
    std::optional<std::string> value = environment(name);
    std::string where = name;
    if (!value || value->empty()) {
      const auto file = environment(name + "_FILE");
      if (!file || file->empty()) continue;
      where = name + "_FILE";
      std::string text = read_file(*file, 1U << 20);
      const size_t last = text.find_last_not_of(" \t\r\n");
      const size_t first = text.find_first_not_of(" \t\r\n");
      value = last == std::string::npos ? "" : text.substr(first, last - first + 1);
    }
    set_from_text(config, option, *value, where);
    config.given.push_back(option.path);
  }
}

void check(const Config& config) {
  if (!config.app.encryption_key.empty() && config.app.encryption_key.size() < 16)
    throw Error(Code::invalid, "app.encryption_key (APP_ENCRYPTION_KEY) must be at least 16 bytes");
  for (const std::string& cidr : config.network.blocked_targets)
    if (!net::parse_cidr(cidr))
      throw Error(Code::invalid, "network.blocked_targets has " + json::quote(cidr) +
                                     ", it must be a CIDR such as 203.0.113.0/24");
  if (!config.sandbox.dns.empty() && !net::parse_address(config.sandbox.dns))
    throw Error(Code::invalid,
                "sandbox.dns is " + json::quote(config.sandbox.dns) + ", it must be an address");
  const std::string& endpoint = config.engine.endpoint;
  if (!endpoint.starts_with("unix:///") && !endpoint.starts_with("tcp://"))
    throw Error(Code::invalid, "engine.endpoint is " + json::quote(endpoint) +
                                   ", it must be unix:///PATH or tcp://HOST:PORT");
  const bool files = config.server.tls_mode == "files";
  if (files && (config.server.tls_cert.empty() || config.server.tls_key.empty()))
    throw Error(Code::invalid,
                "server.tls.mode is \"files\": server.tls.cert and server.tls.key must be set");
  if (!files && !(config.server.tls_cert.empty() && config.server.tls_key.empty()))
    throw Error(Code::invalid,
                "server.tls.cert and server.tls.key are for server.tls.mode files, it is " +
                    json::quote(config.server.tls_mode));
  const auto address = net::parse_address(config.server.host);
  const bool socket = !unix_socket_of(config.server.host).empty();
  if (!address && !socket && config.server.host != "localhost")
    throw Error(Code::invalid, "server.host is " + json::quote(config.server.host) +
                                   ", it must be an address, localhost or unix:///PATH");
  if (socket && config.server.tls_mode != "off")
    throw Error(Code::invalid,
                "server.host is a Unix socket: server.tls.mode must be \"off\" there");
  if (config.server.tls_mode == "off") {
    const bool loopback = socket || config.server.host == "localhost" ||
                          (address && net::parse_cidr("127.0.0.0/8")->contains(*address)) ||
                          (address && address == net::parse_address("::1"));
    if (!loopback)
      throw Error(
          Code::invalid,
          "server.tls.mode is \"off\" but server.host is " + json::quote(config.server.host) +
              ", it must be a loopback address or unix:///PATH: tokens would travel in clear");
  }
}

}  // namespace

std::string unix_socket_of(std::string_view host) {
  constexpr std::string_view kScheme = "unix://";
  return host.starts_with("unix:///") ? std::string(host.substr(kScheme.size())) : "";
}

bool Config::is_given(std::string_view path) const {
  return std::find(given.begin(), given.end(), path) != given.end();
}

Config load_config(const ConfigSources& sources) {
  Config config;
  config.file = sources.file_name;
  if (!sources.file_name.empty()) read_file_text(config, sources);
  if (sources.environment) read_environment(config, sources.environment);
  for (const auto& [path, value] : sources.flags) {
    const Option* option = find_option(path);
    if (!option) throw Error(Code::invalid, "unknown option " + path);
    set_from_text(config, *option, value, "flag for " + path);
    config.given.push_back(path);
  }
  check(config);
  return config;
}

std::string configuration_markdown() {
  std::string text =
      "# Configuration of umpd\n\n"
      "Generated from the table in `cmd/umpd/config.cc`. Options come from a YAML file "
      "(`--config`, "
      "`CONFIG_FILE`, else `config.yml` or `config.yaml` in the working folder), then from the "
      "environment (the name below, or that name with `_FILE` for a file that holds the value), "
      "then from flags; the later wins. None is required. An unknown option stops the start and "
      "names its line.\n\n`engine.*`, `sandbox.*` and `runs.*` seed the SandboxEngine and "
      "Workspace "
      "named `default` where these do not exist yet; afterwards the resource wins and a difference "
      "is a warning in the log.\n\n"
      "| option | environment | default | meaning |\n|---|---|---|---|\n";
  for (const Option& o : options()) {
    const std::string fallback = *o.fallback ? "`" + std::string(o.fallback) + "`" : "empty";
    text += "| `" + std::string(o.path) + "` | `" + env_name(o.path) + "` | " + fallback + " | " +
            o.meaning + " |\n";
  }
  return text;
}

}  // namespace umpteenth::umpd
