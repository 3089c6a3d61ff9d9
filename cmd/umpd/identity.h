// Who the API server is (certificate) and how its own machine reaches it (admin token, kubeconfig).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/http/server.h"
#include "cmd/umpd/config.h"
#include "server/tokens.h"

namespace umpteenth::umpd {

struct Identity {
  std::optional<http::TlsFiles> tls;  // none: plain HTTP
  std::string authority_pem;          // goes into the kubeconfig; "" where the system's is used
  bool renewed = false;
};

// By server.tls.mode. Makes or renews our own certificate (mode self), reads the files (mode files:
// Error(invalid) names the one that does not fit).
Identity load_identity(const Config& config, const std::filesystem::path& data_dir, Time now);

// https://127.0.0.1:8080 for what listens on all addresses.
std::string local_url(const Config& config, int port);

// An admin token and a kubeconfig that holds it, made where they are missing; always rewritten for
// the port in use. rotate: a new token in any case.
void ensure_kubeconfig(const std::filesystem::path& data_dir, server::Tokens& tokens,
                       const Identity& identity, const std::string& url, bool rotate);

}  // namespace umpteenth::umpd
