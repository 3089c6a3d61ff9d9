#include "controllers/runtime/events.h"

#include "apis/object.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/log.h"

namespace umpteenth::controllers {
namespace {

constexpr size_t kMaxMessage = 1024;

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
  emit(object, "Normal", reason, message);
}

void Events::warning(const json::Value& object, std::string_view reason, std::string_view message) {
  emit(object, "Warning", reason, message);
}

void Events::emit(const json::Value& object, std::string_view type, std::string_view reason,
                  std::string_view message) {
  std::string ns = apis::namespace_of(object);
  if (ns.empty()) ns = apis::kDefaultWorkspace;  // as Kubernetes does for cluster-scoped objects
  std::string text = log::clip(message, kMaxMessage);
  std::string identity = apis::uid_of(object) + "\n" + object.get_string("kind") + "\n" +
                         std::string(type) + "\n" + std::string(reason) + "\n" + text;
  std::string suffix = crypto::hex(crypto::sha256(identity)).substr(0, 16);
  store::Key key{"events", ns, apis::name_of(object).substr(0, 200) + "." + suffix};
  std::string now = format_time(clock_.now());
  try {
    if (auto known = store_.find(key)) {
      json::Value event = known->parse();
      event.set("count", event.get_int("count", 1) + 1);
      event.set("lastTimestamp", now);
      store_.commit_one({store::Verb::update, key, event, known->revision},
                        "system:controller:" + component_, "event " + key.name);
      return;
    }
    json::Value event =
        json::Value::object({{"apiVersion", "v1"},
                             {"kind", "Event"},
                             {"metadata", json::Value::object({{"name", key.name},
                                                               {"namespace", ns},
                                                               {"uid", crypto::uuid4()},
                                                               {"creationTimestamp", now}})},
                             {"involvedObject", reference_to(object)},
                             {"type", type},
                             {"reason", reason},
                             {"message", text},
                             {"source", json::Value::object({{"component", component_}})},
                             {"reportingComponent", component_},
                             {"reportingInstance", "umpd"},
                             {"firstTimestamp", now},
                             {"lastTimestamp", now},
                             {"count", 1}});
    store_.commit_one({store::Verb::create, key, std::move(event), std::nullopt},
                      "system:controller:" + component_, "event " + key.name);
  } catch (const Error& e) {  // an event is a courtesy: what it tells of has happened anyway
    log::warn("event not written", {{"event", key.name}, {"error", log::clip(e.message())}});
  }
}

}  // namespace umpteenth::controllers
