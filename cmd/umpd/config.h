// umpd's options: a YAML file, then the environment (the path in upper case with _, or that name
// with _FILE: a file that holds the value), then flags; the later wins. docs/configuration.md is
// generated from the table in config.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace umpteenth::umpd {

struct Config {
  struct App {
    std::string url, encryption_key, data_dir = "data";
  } app;
  struct Server {
    std::string host = "127.0.0.1";
    int64_t port = 8080, broker_port = 8081;
    bool trust_proxy = false;
    std::string tls_mode = "self", tls_cert, tls_key;
  } server;
  struct Log {
    std::string level = "info";
    bool json = false;
  } log;
  struct Engine {
    std::string endpoint = "unix:///var/run/docker.sock";
  } engine;
  struct Sandbox {
    std::string image, egress_filter = "auto", dns;
  } sandbox;
  struct Network {
    bool allow_private_targets = true;
    std::vector<std::string> blocked_targets;
  } network;
  struct Runs {
    int64_t max_concurrent = 3, retention_days = 90;
  } runs;
  struct Git {
    std::vector<std::string> file_roots;
  } git;

  std::string file;  // the options' file, "" = none
  // The paths that a file, the environment or a flag set, e.g. "sandbox.image".
  std::vector<std::string> given;
  bool is_given(std::string_view path) const;
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;
using Flags = std::vector<std::pair<std::string, std::string>>;  // path, value

struct ConfigSources {
  std::string file_name;  // for messages; "" = no file
  std::string file_text;
  Environment environment;
  Flags flags;
};

// The path of a server.host that names a Unix socket (unix:///PATH), else "".
std::string unix_socket_of(std::string_view host);

// Error(invalid) with `FILE: line N: unknown option …`, or the option, its value and the rule.
Config load_config(const ConfigSources& sources);

std::string configuration_markdown();

}  // namespace umpteenth::umpd
