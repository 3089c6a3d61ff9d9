#include "server/history.h"

#include <charconv>

#include "server/read.h"

namespace umpteenth::server {
namespace {

constexpr size_t kDefaultLimit = 100;
constexpr size_t kMaxLimit = 1000;

const char* name_of(store::Verb verb) {
  switch (verb) {
    case store::Verb::create:
      return "create";
    case store::Verb::update:
      return "update";
    case store::Verb::remove:
      return "delete";
  }
  return "";
}

size_t read_limit(std::string_view text) {
  if (text.empty()) return kDefaultLimit;
  size_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || end != text.data() + text.size() || limit == 0 || limit > kMaxLimit)
    throw Error(Code::bad_request, "limit: Invalid value: " + json::quote(text) +
                                       ": must be between 1 and " + std::to_string(kMaxLimit));
  return limit;
}

}  // namespace

void require_history(const Call& call) {
  const Resource& r = call.resource();
  if (r.kind->storage != apis::Storage::git || r.is_view())
    throw Error(Code::bad_request,
                r.qualified() + " have no history: they are kept in the database");
}

http::Response object_history(Env& env, Call& call) {
  require_history(call);
  const Resource& r = call.resource();
  const auto lines = env.store.history(call.key(), read_limit(call.http.param("limit")));
  if (lines.empty()) throw not_found(r, call.target.name);
  json::Value items = json::Value::array();
  for (const store::Revision& line : lines)
    items.push_back(json::Value::object({{"revision", std::to_string(line.revision)},
                                         {"commit", line.commit},
                                         {"time", format_time(line.time)},
                                         {"actor", line.actor},
                                         {"verb", name_of(line.verb)},
                                         {"message", line.message}}));
  return answer(
      call, 200,
      json::Value::object(
          {{"kind", "History"}, {"apiVersion", apis::kGroupVersion}, {"items", std::move(items)}})
          .dump());
}

http::Response object_plan(Env& env, Call& call) {
  find_record(env, call);
  if (!env.plans)
    throw Error(Code::unavailable, "there is no plan yet: the controllers are not running")
        .retry_after(1);
  return answer(
      call, 200,
      env.plans->preview(call.resource().kind->plural, call.target.ns, call.target.name).dump());
}

http::Response remove_firewall(Env& env, Call& call) {
  find_record(env, call);
  if (!env.remove_firewall)
    throw Error(Code::unavailable, "the controllers are not running").retry_after(1);
  return answer(call, 200, env.remove_firewall(call.target.name).dump());
}

}  // namespace umpteenth::server
