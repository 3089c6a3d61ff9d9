// Which server to talk to, and how: kubeconfig files, as kubectl reads them.
#pragma once

#include <string>

#include "base/json.h"

namespace umpteenth::client {

struct Connection {
  std::string server;  // https://host:port
  std::string ca_pem;  // "" = the system's authorities
  std::string token;
  std::string ns = "default";
  std::string user, context, file;
  bool insecure = false;  // insecure-skip-tls-verify
};

struct ConnectionFlags {
  std::string kubeconfig, context, ns, server, token;
};

// The file: --kubeconfig, $UMPCONFIG, $KUBECONFIG (the first of a list), else
// ~/.config/umpteenth/kubeconfig, else ~/.kube/config. Error(not_found) says which were looked at.
std::string kubeconfig_path(const ConnectionFlags& flags);
Connection load_connection(const ConnectionFlags& flags);
Connection connection_from(const json::Value& kubeconfig, const std::string& file,
                           const ConnectionFlags& flags);

}  // namespace umpteenth::client
