// The kubeconfig that umpd writes for its own machine: CA, admin token, context `umpteenth`.
#pragma once

#include <filesystem>
#include <string>

namespace umpteenth::server {

struct Kubeconfig {
  std::string server;         // https://127.0.0.1:8080
  std::string authority_pem;  // "" for plain http
  std::string token;
  std::string ns = "default";
};
std::string kubeconfig_text(const Kubeconfig& config);                               // YAML
void write_kubeconfig(const std::filesystem::path& path, const Kubeconfig& config);  // 0600
// The token that such a file holds; "" where it is missing or another's.
std::string kubeconfig_token(const std::filesystem::path& path);

}  // namespace umpteenth::server
