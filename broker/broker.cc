#include "broker/broker.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "broker/llm.h"
#include "broker/reply.h"

namespace umpteenth::broker {
namespace {

using runs::LiveRun;

constexpr size_t kLargeBody = 8U << 20;
constexpr size_t kSmallBody = 256U << 10;
constexpr std::string_view kStatePrefix = "/v1/state/";

// One request of a run, which holds a turn of it.
struct Call {
  const http::Request& request;
  const std::shared_ptr<LiveRun>& run;
  LiveRun::Turn turn;
  const Options& options;
  Writers& writers;

  std::string_view state_key() const {
    return std::string_view(request.path).substr(kStatePrefix.size());
  }
};

http::Response get_state(Call& call) {
  call.run->record_call("state list", {}, false);
  const auto held = std::make_shared<LiveRun::Turn>(std::move(call.turn));
  return call.writers.start([run = call.run, held](http::Stream& stream) {
    std::string chunk = "{";
    bool first = true;
    for (const std::string& key : run->state_keys()) {
      const std::optional<std::string> value = run->state_get(key);
      if (!value) continue;
      if (!std::exchange(first, false)) chunk += ',';
      chunk += json::quote(key) + ":" + json::quote(*value);
      if (chunk.size() >= 65536 && !stream.push_wait(std::exchange(chunk, {}))) return;
    }
    stream.push_wait(chunk + "}");
  });
}

http::Response get_state_key(Call& call) {
  const std::string_view key = call.state_key();
  call.run->record_call("state get", json::Value::object({{"key", key}}), false);
  const std::optional<std::string> value = call.run->state_get(key);
  if (!value) throw Error(Code::not_found, "the job's state has no key \"" + log::clip(key) + "\"");
  return answer(std::move(call.turn), "{\"value\":" + json::quote(*value) + "}");
}

http::Response put_state_key(Call& call) {
  const json::Value body = parse_body(call.request.body);
  const std::string& value = required_string(body, "value");
  const bool first = call.run->state_set(call.state_key(), value);
  call.run->record_call("state set",
                        json::Value::object({{"key", call.state_key()}, {"value", value}}), first);
  return no_content();
}

http::Response set_output(Call& call) {
  const json::Value body = parse_body(call.request.body);
  const std::string& key = required_string(body, "key");
  const json::Value* value = body.find("value");
  if (!value) throw Error(Code::invalid, "value is missing");
  call.run->set_output(key, *value);
  call.run->record_call("output set", json::Value::object({{"key", key}, {"value", *value}}),
                        false);
  return no_content();
}

http::Response add_step(Call& call) {
  const json::Value body = parse_body(call.request.body);
  const std::string& name = required_string(body, "name");
  call.run->add_step(name);
  call.run->record("script.step", json::Value::object({{"name", name}}));
  return no_content();
}

http::Response set_failure(Call& call) {
  const json::Value body = parse_body(call.request.body);
  const std::string& reason = required_string(body, "reason");
  call.run->set_failure(reason);
  call.run->record_call("fail", json::Value::object({{"reason", reason}}), false);
  return no_content();
}

http::Response set_summary(Call& call) {
  const json::Value body = parse_body(call.request.body);
  const std::string& summary = required_string(body, "summary");
  call.run->set_summary(summary);
  call.run->record_call("summary", json::Value::object({{"summary", summary}}), false);
  return no_content();
}

http::Response ask_model(Call& call) {
  const LlmCall question = parse_llm_call(parse_body(call.request.body));
  return answer(std::move(call.turn), run_llm_call(question, call.options, *call.run).dump());
}

http::Response no_mcp_tools(Call& call) {
  const std::string_view server = call.request.param("server");
  if (server.empty()) return http::Response::json(200, "[]");
  throw Error(Code::not_found, "MCP server " + log::clip(server) + " not found");
}

http::Response no_mcp_call(Call& call) {
  const json::Value body = parse_body(call.request.body);
  throw Error(Code::not_found, "MCP tool " + log::clip(required_string(body, "tool")) +
                                   " on server " + log::clip(required_string(body, "server")) +
                                   " not found");
}

struct Route {
  std::string_view method, path;
  http::Response (*serve)(Call& call);
  size_t body_limit;
};
constexpr std::array kRoutes = {
    Route{"GET", "/v1/state", get_state, 0},
    Route{"GET", kStatePrefix, get_state_key, 0},
    Route{"PUT", kStatePrefix, put_state_key, kLargeBody},
    Route{"POST", "/v1/output", set_output, kLargeBody},
    Route{"POST", "/v1/step", add_step, kSmallBody},
    Route{"POST", "/v1/fail", set_failure, kSmallBody},
    Route{"POST", "/v1/summary", set_summary, kSmallBody},
    Route{"POST", "/v1/llm", ask_model, kLargeBody},
    Route{"GET", "/v1/mcp/tools", no_mcp_tools, 0},
    Route{"POST", "/v1/mcp/call", no_mcp_call, kLargeBody},
};

bool matches(const Route& route, std::string_view path) {
  if (route.path != kStatePrefix) return path == route.path;
  return path.starts_with(kStatePrefix) && path.size() > kStatePrefix.size();
}

const Route& find_route(const http::Request& request) {
  bool known = false;
  for (const Route& route : kRoutes) {
    if (!matches(route, request.path)) continue;
    if (route.method == request.method) return route;
    known = true;
  }
  if (known) throw Error(Code::method_not_allowed, "this path does not take " + request.method);
  throw Error(Code::not_found, "the broker has no such path");
}

std::string code_name(const Error& error) {
  if (error.code() == Code::unauthorized) return "invalid_token";
  std::string name;
  for (const char c : status_reason(error.code())) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !name.empty()) name += '_';
    name += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return name.empty() ? "error" : name;
}

http::Response error_answer(const Error& error) {
  http::Response response = http::Response::json(
      http_status(error.code()),
      json::Value::object({{"code", code_name(error)}, {"message", error.message()}}).dump());
  if (error.retry_after_seconds())
    response.headers.set("Retry-After", std::to_string(*error.retry_after_seconds()));
  return response;
}

}  // namespace

struct Broker::Impl {
  runs::Registry& registry;
  Options options;
  Writers writers;

  // Error(unauthorized) for every kind of wrong token alike.
  std::shared_ptr<LiveRun> authenticate(const http::Request& request) const {
    constexpr std::string_view kBearer = "Bearer ";
    std::string_view token = request.headers.get("Authorization");
    std::shared_ptr<LiveRun> run;
    if (token.starts_with(kBearer)) {
      token.remove_prefix(kBearer.size());
      run = registry.find(token, request.local.address);
    }
    if (!run) throw Error(Code::unauthorized, "the run token is not valid here");
    return run;
  }

  http::Admitted admit(const http::Request& head) const {
    if (!head.target.starts_with('/'))
      throw Error(Code::forbidden,
                  "the egress proxy only serves sandboxes with internet access or an allow-list");
    authenticate(head);
    return {find_route(head).body_limit};
  }

  http::Response handle(const http::Request& request) {
    const std::shared_ptr<LiveRun> run = authenticate(request);
    const Route& route = find_route(request);
    Call call{request, run, run->take_turn(), options, writers};
    return route.serve(call);
  }
};

Broker::Broker(runs::Registry& registry, Options options)
    : impl_(new Impl{registry, std::move(options), {}}) {}
Broker::~Broker() = default;

http::Site Broker::site() {
  http::Site site;
  site.admit = [impl = impl_.get()](const http::Request& head) {
    return std::variant<http::Admitted, http::Response>(impl->admit(head));
  };
  site.handle = [impl = impl_.get()](const http::Request& request) {
    return impl->handle(request);
  };
  site.error_response = [](const http::Request&, const http::ErrorView& view) {
    if (const auto* error = dynamic_cast<const Error*>(&view.exception()))
      return error_answer(*error);
    log::error("a broker call failed", {{"error", log::clip(view.exception().what())}});
    return error_answer(Error(Code::internal, "internal error"));
  };
  return site;
}

http::Limits limits(int concurrent_runs) {
  constexpr size_t kTurnsOfARun = 8 + 64;
  http::Limits limits = http::broker_limits();
  const auto runs = static_cast<size_t>(std::clamp(concurrent_runs, 1, 14));
  limits.handler_threads = 16 + runs * kTurnsOfARun;
  return limits;
}

}  // namespace umpteenth::broker
