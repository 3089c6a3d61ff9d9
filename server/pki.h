// The certificates of the API server: an authority of umpd's own and a server certificate below it,
// kept in a folder (0700, keys 0600) and renewed before they expire.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/http/server.h"
#include "base/x509.h"

namespace umpteenth::server {

struct Pki {
  std::string authority_pem;
  http::TlsFiles tls;
  Time not_after;        // of the server's certificate
  bool renewed = false;  // something was made or replaced by this call
};

// Loads, or makes what is missing, broken, about to expire (server: 30 days before, authority: a
// year before, with the same key, so that old kubeconfigs go on working) or for other names.
// Error(internal) names the file. Call it again daily.
Pki ensure_pki(const std::filesystem::path& folder, const x509::Names& names, Time now);

// localhost, 127.0.0.1, ::1, the host's name, and what else is given (a host name or an address).
x509::Names server_names(const std::string& hostname, const std::string& app_host);

}  // namespace umpteenth::server
