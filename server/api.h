// The people's API (8080): Kubernetes-shaped, a pure Request → Response behind http::Server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "apis/seal.h"
#include "base/clock.h"
#include "base/http/message.h"
#include "base/http/server.h"
#include "server/hardening.h"
#include "server/ports.h"
#include "server/tokens.h"
#include "store/store.h"

namespace umpteenth::server {

struct ServerDeps {
  store::Store& store;
  const apis::Sealer& sealer;
  Clock& clock;
  Tokens& tokens;
  Trigger* trigger = nullptr;    // null: starting runs answers 503
  PlanPreview* plans = nullptr;  // null: …/plan answers 503
  // Why umpd is not ready, nullopt when it is; for /readyz, beside the store's own health.
  std::function<std::optional<std::string>()> not_ready;
  // Prometheus lines of the other parts.
  std::function<std::string()> more_metrics;
  // Whether an end of a connection is in a sandbox or in a network of theirs: such a connection is
  // closed at once.
  std::function<bool(const http::Endpoint& end)> sandbox_facing;
  Finalizers finalizers = {};
  // Takes the rules of this installation out of an engine's host; empty: answers 503.
  std::function<json::Value(const std::string& engine)> remove_firewall = {};
  // What umpd knows of its own options and files, asked at each request; null: the checklist
  // answers 503.
  std::function<HardeningFacts()> hardening_facts = nullptr;
};

class Api {
 public:
  explicit Api(ServerDeps deps);
  ~Api();             // after http::Server has stopped
  http::Site site();  // valid as long as this object

  std::variant<http::Admitted, http::Response> admit(const http::Request& head) const;
  http::Response handle(const http::Request& request);  // throws Error
  http::Response error_response(const http::Request& request, const std::exception& e) const;
  // handle with errors answered, as http::Server does.
  http::Response answer(const http::Request& request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace umpteenth::server
