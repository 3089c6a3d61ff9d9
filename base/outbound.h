// The one client for calls to the outside (model APIs, MCP servers, webhooks): libcurl, TLS always
// verified, environment proxies ignored, the address policy asked at every dial, redirects off.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"

namespace umpteenth {

struct OutboundPolicy {
  bool allow_private = true;  // network.allow_private_targets
  net::Topology topology;     // for blocked targets
  std::string ca_file;        // "" = the system's
};

struct OutboundRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  Duration connect_timeout{10'000};
  Duration idle_timeout{120'000};  // no byte for so long
  Duration total_timeout{600'000};
  size_t max_body = 64U << 20;
  // Where set, successful bodies go here as they arrive instead of into OutboundResponse::body;
  // false ends the transfer.
  std::function<bool(std::string_view)> on_data;
};

struct OutboundResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;                                          // error bodies: at most 1 MiB
  std::string header(std::string_view lower_case_name) const;
};

class Outbound {
 public:
  explicit Outbound(OutboundPolicy policy) : policy_(std::move(policy)) {}
  // Error(bad_gateway) dial or TLS failure, Error(timeout), Error(forbidden) the address policy
  // (`… points to a private or local network address`), Error(too_large) body over max_body.
  OutboundResponse send(const OutboundRequest& request, std::stop_token stop = {}) const;
  // Save-time check of a URL: resolves (5 s) and throws Error(invalid) as above.
  void check_target(std::string_view url) const;

 private:
  OutboundPolicy policy_;
};

}  // namespace umpteenth
