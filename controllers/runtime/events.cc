#include "controllers/runtime/events.h"

#include "apis/object.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/log.h"

namespace umpteenth::controllers {
namespace {

constexpr size_t kMaxMessage = 1024;
constexpr int kAttempts = 20;

json::Value reference_to(const json::Value& object) {
  const json::Value& metadata = object.get("metadata");
  return json::Value::object({{"apiVersion", object.get("apiVersion")},
                              {"kind", object.get("kind")},
                              {"namespace", apis::namespace_of(object)},
                              {"name", apis::name_of(object)},
                              {"uid", apis::uid_of(object)},
                              {"resourceVersion", metadata.get("resourceVersion")}});
}

}  // namespace

void Events::normal(const json::Value& object, std::string_view reason, std::string_view message) {
  emit(object, {"Normal", std::string(reason), log::clip(message, kMaxMessage), false});
}

void Events::warning(const json::Value& object, std::string_view reason, std::string_view message) {
  emit(object, {"Warning", std::string(reason), log::clip(message, kMaxMessage), false});
}

void Events::latest(const json::Value& object, std::string_view type, std::string_view reason,
                    std::string_view message) {
  emit(object, {std::string(type), std::string(reason), log::clip(message, kMaxMessage), true});
}

void Events::emit(const json::Value& object, const Telling& telling) {
  std::string ns = apis::namespace_of(object);
  if (ns.empty()) ns = apis::kDefaultWorkspace;  // as Kubernetes does for cluster-scoped objects
  std::string identity = apis::uid_of(object) + "\n" + object.get_string("kind") + "\n" +
                         telling.type + "\n" + telling.reason + "\n" +
                         (telling.one_a_reason ? "" : telling.message);
  std::string suffix = crypto::hex(crypto::sha256(identity)).substr(0, 16);
  store::Key key{"events", ns, apis::name_of(object).substr(0, 200) + "." + suffix};
  for (int attempt = 1;; ++attempt) {
    try {
      return write(key, object, telling);
    } catch (const Error& e) {
      bool again = e.code() == Code::conflict || e.code() == Code::already_exists ||
                   e.code() == Code::not_found;  // told by two at once, or expired meanwhile
      if (again && attempt < kAttempts) continue;
      // An event is a courtesy: what it tells of has happened anyway.
      log::warn("event not written", {{"event", key.name}, {"error", log::clip(e.message())}});
      return;
    }
  }
}

void Events::write(const store::Key& key, const json::Value& object, const Telling& telling) {
  std::string now = format_time(clock_.now());
  std::string actor = "system:controller:" + component_;
  if (auto known = store_.find(key)) {
    json::Value event = known->parse();
    event.set("count", event.get_int("count", 1) + 1);
    event.set("message", telling.message);
    event.set("lastTimestamp", now);
    store_.commit_one({store::Verb::update, key, event, known->revision}, actor,
                      "event " + key.name);
    return;
  }
  json::Value event =
      json::Value::object({{"apiVersion", "v1"},
                           {"kind", "Event"},
                           {"metadata", json::Value::object({{"name", key.name},
                                                             {"namespace", key.ns},
                                                             {"uid", crypto::uuid4()},
                                                             {"creationTimestamp", now}})},
                           {"involvedObject", reference_to(object)},
                           {"type", telling.type},
                           {"reason", telling.reason},
                           {"message", telling.message},
                           {"source", json::Value::object({{"component", component_}})},
                           {"reportingComponent", component_},
                           {"reportingInstance", "umpd"},
                           {"firstTimestamp", now},
                           {"lastTimestamp", now},
                           {"count", 1}});
  store_.commit_one({store::Verb::create, key, std::move(event), std::nullopt}, actor,
                    "event " + key.name);
}

}  // namespace umpteenth::controllers
