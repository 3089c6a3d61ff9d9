#include "server/api.h"

#include <chrono>
#include <string_view>

#include "base/log.h"
#include "server/call.h"
#include "server/collector.h"
#include "server/discovery.h"
#include "server/doctor.h"
#include "server/history.h"
#include "server/metrics.h"
#include "server/read.h"
#include "server/remove.h"
#include "server/reviews.h"
#include "server/rollback.h"
#include "server/run_reads.h"
#include "server/run_writes.h"
#include "server/sealing_key.h"
#include "server/token_routes.h"
#include "server/watch.h"
#include "server/write.h"

namespace umpteenth::server {
namespace {

constexpr size_t kBodyLimit = 3U << 20;

using Handler = http::Response (*)(Env&, Call&);

http::Response list_or_watch(Env& env, Call& call) {
  return flag(call.http, "watch") ? watch_objects(env, call) : list_objects(env, call);
}

http::Response get_or_watch(Env& env, Call& call) {
  return flag(call.http, "watch") ? watch_objects(env, call) : get_object(env, call);
}

// What a path names, the method, the verb that the table of authority knows, and who answers.
enum class Part { collection, object, status };
struct Route {
  Part part;
  std::string_view method, verb;
  Handler handler;
};
constexpr Route kRoutes[] = {
    {Part::collection, "GET", "list", list_or_watch},
    {Part::collection, "POST", "create", create_object},
    {Part::collection, "DELETE", "deletecollection", delete_collection},
    {Part::object, "GET", "get", get_or_watch},
    {Part::object, "PUT", "update", replace_object},
    {Part::object, "PATCH", "patch", patch_object},
    {Part::object, "DELETE", "delete", delete_object},
    {Part::status, "GET", "get", get_object},
    {Part::status, "PUT", "update", replace_object},
    {Part::status, "PATCH", "patch", patch_object},
};

// Below an object, beside status. resource "" = every kind of ours.
struct Subroute {
  std::string_view resource, subresource, method, verb;
  bool has_rest;
  Handler handler;
};
constexpr Subroute kSubroutes[] = {
    {"", "history", "GET", "get", false, object_history},
    {"", "plan", "GET", "get", false, object_plan},
    {"", "rollback", "POST", "update", false, roll_back},
    {"jobs", "run", "POST", "create", false, run_job},
    {"sandboxengines", "firewall", "DELETE", "delete", false, remove_firewall},
    {"runs", "timeline", "GET", "get", false, run_timeline},
    {"runs", "log", "GET", "get", false, run_log},
    {"runs", "artifacts", "GET", "get", true, run_artifacts},
};

struct Chosen {
  std::string_view verb;
  Handler handler;
};

Chosen choose_subroute(const Target& target, std::string_view method) {
  bool known = false;
  for (const Subroute& route : kSubroutes) {
    if (route.subresource != target.subresource || target.resource->group.empty()) continue;
    if (!route.resource.empty() && route.resource != target.resource->kind->plural) continue;
    if (!target.rest.empty() && !route.has_rest) continue;
    known = true;
    if (route.method == method) return {route.verb, route.handler};
  }
  if (known) throw method_not_allowed();
  throw no_such_route();
}

Chosen choose(const Target& target, const http::Request& request) {
  const std::string_view method =
      request.method == "HEAD" ? "GET" : std::string_view(request.method);
  if (!target.subresource.empty() && target.subresource != "status")
    return choose_subroute(target, method);
  const bool status = target.subresource == "status";
  if (status && (target.resource->group.empty() || !target.rest.empty())) throw no_such_route();
  const Part part = target.collection() ? Part::collection : (status ? Part::status : Part::object);
  for (const Route& route : kRoutes) {
    if (route.part != part || route.method != method) continue;
    std::string_view verb = route.verb;
    if (method == "GET" && part != Part::status && flag(request, "watch")) verb = "watch";
    // Across workspaces one can only look.
    const bool everywhere = target.resource->kind->namespaced() && target.ns.empty();
    if (!target.resource->offers(verb) || (everywhere && method != "GET")) break;
    return {verb, route.handler};
  }
  throw method_not_allowed();
}

// Paths that need no token.
bool is_public(std::string_view path) {
  return path == "/healthz" || path == "/livez" || path == "/readyz" || path == "/version" ||
         path == "/version/";
}

std::string_view bearer(const http::Request& request) {
  const std::string_view header = request.headers.get("Authorization");
  constexpr std::string_view kScheme = "Bearer ";
  if (header.size() <= kScheme.size()) return "";
  for (size_t i = 0; i < kScheme.size(); ++i)
    if ((header[i] | 0x20) != (kScheme[i] | 0x20)) return "";
  return header.substr(kScheme.size());
}

void refuse_impersonation(const http::Request& request) {
  for (const auto& [name, value] : request.headers.fields()) {
    constexpr std::string_view kPrefix = "impersonate-";
    if (name.size() < kPrefix.size()) continue;
    bool is = true;
    for (size_t i = 0; i < kPrefix.size(); ++i) is &= (name[i] | 0x20) == (kPrefix[i] | 0x20);
    if (is)
      throw Error(Code::forbidden, "impersonation (the header " + name +
                                       ") is not offered: use a token of that user");
  }
}

}  // namespace

struct Api::Impl {
  explicit Impl(ServerDeps d)
      : deps(std::move(d)),
        collector(deps.store, deps.clock),
        env{deps.store, deps.sealer,  deps.clock, deps.tokens,     periodic,
            collector,  deps.trigger, deps.plans, deps.finalizers, deps.remove_firewall} {
    collector.start();
  }

  Identity identify(const http::Request& request) const {
    const auto who = deps.tokens.find(bearer(request));
    if (!who) throw Error(Code::unauthorized, "Unauthorized");
    refuse_impersonation(request);
    return *who;
  }

  std::optional<http::Response> public_page(const http::Request& request) const {
    if (!is_public(request.path)) return std::nullopt;
    if (request.method != "GET" && request.method != "HEAD") throw method_not_allowed();
    if (request.path.starts_with("/version")) return http::Response::json(200, version_document());
    if (request.path != "/readyz") return http::Response::text(200, "ok");
    const auto reason = not_ready();
    return reason ? http::Response::text(503, *reason) : http::Response::text(200, "ok");
  }

  std::optional<std::string> not_ready() const {
    if (const store::Health health = deps.store.health(); !health.ok) return health.reason;
    return deps.not_ready ? deps.not_ready() : std::nullopt;
  }

  http::Response metrics_page() const {
    std::string text = metrics.text(deps.store);
    if (deps.more_metrics) text += deps.more_metrics();
    http::Response response = http::Response::text(200, std::move(text));
    response.headers.set("Content-Type", "text/plain; version=0.0.4");
    return response;
  }

  http::Response resource_page(const http::Request& request, const Identity& who) {
    auto target = parse_target(request.path);
    if (!target) throw no_such_route();
    const Chosen chosen = choose(*target, request);
    Call call{request, who, std::move(*target), deps.clock.now(), {}};
    authorize(call, chosen.verb);
    return chosen.handler(env, call);
  }

  http::Response handle(const http::Request& request) {
    if (auto page = public_page(request)) return std::move(*page);
    const Identity who = identify(request);
    if (auto page = discovery.answer(request)) return std::move(*page);
    if (auto page = answer_review(request, who)) return std::move(*page);
    if (auto page = answer_tokens(request, who, deps.tokens)) return std::move(*page);
    if (auto page = answer_sealing_key(request, deps.sealer)) return std::move(*page);
    if (auto page = answer_doctor(request, who, deps)) return std::move(*page);
    if (request.path == "/metrics" && request.method == "GET") return metrics_page();
    return resource_page(request, who);
  }

  ServerDeps deps;
  Discovery discovery;
  Metrics metrics;
  Collector collector;
  Env env;
  Periodic periodic;  // last: its thread uses the rest
};

Api::Api(ServerDeps deps) : impl_(std::make_unique<Impl>(std::move(deps))) {}
Api::~Api() = default;

std::variant<http::Admitted, http::Response> Api::admit(const http::Request& head) const {
  try {
    if (!is_public(head.path)) impl_->identify(head);
    return http::Admitted{is_public(head.path) ? 0 : kBodyLimit};
  } catch (const Error& e) {  // refused before the body is read
    return error_response(head, e);
  }
}

http::Response Api::handle(const http::Request& request) {
  const auto begin = std::chrono::steady_clock::now();
  http::Response response = impl_->handle(request);
  const auto took = std::chrono::steady_clock::now() - begin;
  impl_->metrics.count(request.method, response.status,
                       std::chrono::duration_cast<std::chrono::microseconds>(took));
  return response;
}

http::Response Api::error_response(const http::Request& request, const std::exception& e) const {
  apis::ErrorSubject subject;
  if (const auto target = parse_target(request.path))
    subject = target->resource->subject(target->name);
  const auto* known = dynamic_cast<const Error*>(&e);
  if (!known) log::error("request failed", {{"path", request.path}, {"error", e.what()}});
  const Error error = known ? *known
                            : Error(Code::internal,
                                    "Internal error occurred: the log of umpd "
                                    "says more");
  http::Response response = answer_error(error, subject);
  impl_->metrics.count(request.method, response.status, {});
  return response;
}

http::Response Api::answer(const http::Request& request) {
  try {
    return handle(request);
  } catch (const std::exception& e) {
    return error_response(request, e);
  }
}

http::Site Api::site() {
  http::Site site;
  site.admit = [this](const http::Request& head) { return admit(head); };
  site.handle = [this](const http::Request& request) { return handle(request); };
  site.error_response = [this](const http::Request& request, const http::ErrorView& error) {
    return error_response(request, error.exception());
  };
  site.accept = [this](const http::Endpoint& peer, const http::Endpoint& local) {
    const auto& sandbox_facing = impl_->deps.sandbox_facing;
    return !sandbox_facing || (!sandbox_facing(local) && !sandbox_facing(peer));
  };
  return site;
}

}  // namespace umpteenth::server
