#include "apis/object.h"

#include <algorithm>
#include <charconv>

#include "base/crypto.h"
#include "base/error.h"

namespace umpteenth::apis {
namespace {

const json::Value& meta(const json::Value& object, std::string_view key) {
  return object.get("metadata").get(key);
}

std::string meta_string(const json::Value& object, std::string_view key) {
  return object.get("metadata").get_string(key);
}

bool lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

json::Value make_object(const Kind& kind, std::string_view ns, std::string_view name,
                        json::Value spec) {
  json::Value metadata = json::Value::object({{"name", name}});
  if (kind.namespaced()) metadata.set("namespace", ns);
  return json::Value::object({{"apiVersion", kind.api_version()},
                              {"kind", kind.kind},
                              {"metadata", std::move(metadata)},
                              {"spec", std::move(spec)}});
}

std::string name_of(const json::Value& object) { return meta_string(object, "name"); }
std::string namespace_of(const json::Value& object) { return meta_string(object, "namespace"); }
std::string uid_of(const json::Value& object) { return meta_string(object, "uid"); }

int64_t generation_of(const json::Value& object) {
  return object.get("metadata").get_int("generation");
}

uint64_t revision_of(const json::Value& object) {
  const std::string text = meta_string(object, "resourceVersion");
  uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && end == text.data() + text.size() ? n : 0;
}

Time created_at(const json::Value& object) {
  const std::string text = meta_string(object, "creationTimestamp");
  return text.empty() ? Time() : parse_time(text);
}

bool deleting(const json::Value& object) {
  return !meta_string(object, "deletionTimestamp").empty();
}

bool has_finalizer(const json::Value& object, std::string_view finalizer) {
  const json::Value& all = meta(object, "finalizers");
  return all.is_array() && std::any_of(all.items().begin(), all.items().end(), [&](const auto& f) {
           return f.is_string() && f.as_string() == finalizer;
         });
}

void add_finalizer(json::Value& object, std::string_view finalizer) {
  if (!has_finalizer(object, finalizer)) object["metadata"]["finalizers"].push_back(finalizer);
}

bool remove_finalizer(json::Value& object, std::string_view finalizer) {
  if (!has_finalizer(object, finalizer)) return false;
  json::Value& all = object["metadata"]["finalizers"];
  std::erase_if(all.items(), [&](const json::Value& f) { return f.as_string() == finalizer; });
  if (all.empty()) object["metadata"].erase("finalizers");
  return true;
}

bool ready_to_remove(const json::Value& object) {
  return deleting(object) && meta(object, "finalizers").empty();
}

std::string label_of(const json::Value& object, std::string_view label) {
  return meta(object, "labels").get_string(label);
}
std::string annotation_of(const json::Value& object, std::string_view annotation) {
  return meta(object, "annotations").get_string(annotation);
}

std::string job_label_value(std::string_view job) {
  if (job.size() <= 63) return std::string(job);
  return std::string(job.substr(0, 54)) + "-" + crypto::hex(crypto::sha256(job)).substr(0, 8);
}

std::optional<Condition> find_condition(const json::Value& object, std::string_view type) {
  const json::Value& all = object.at_path({"status", "conditions"});
  if (!all.is_array()) return std::nullopt;
  for (const json::Value& c : all.items())
    if (c.get_string("type") == type)
      return Condition{c.get_string("type"), c.get_string("status"), c.get_string("reason"),
                       c.get_string("message"), c.get_int("observedGeneration")};
  return std::nullopt;
}

void set_condition(json::Value& status, const Condition& condition, Time now) {
  json::Value& all = status["conditions"];
  if (all.is_null()) all = json::Value::array();
  std::string since = format_time(now);
  auto place = std::find_if(all.items().begin(), all.items().end(), [&](const json::Value& c) {
    return c.get_string("type") == condition.type;
  });
  if (place != all.items().end() && place->get_string("status") == condition.status &&
      place->find("lastTransitionTime"))
    since = place->get_string("lastTransitionTime");
  json::Value made = json::Value::object({{"type", condition.type},
                                          {"status", condition.status},
                                          {"observedGeneration", condition.observed_generation},
                                          {"lastTransitionTime", since},
                                          {"reason", condition.reason},
                                          {"message", condition.message}});
  if (place != all.items().end())
    *place = std::move(made);
  else
    all.push_back(std::move(made));
}

bool valid_dns_label(std::string_view name) {
  return !name.empty() && name.size() <= 63 && lower_alnum(name.front()) &&
         lower_alnum(name.back()) &&
         std::all_of(name.begin(), name.end(), [](char c) { return lower_alnum(c) || c == '-'; });
}

bool valid_dns_subdomain(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  for (size_t at = 0; at <= name.size();) {
    const size_t dot = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, dot - at);
    if (part.empty() || !lower_alnum(part.front()) || !lower_alnum(part.back()) ||
        !std::all_of(part.begin(), part.end(), [](char c) { return lower_alnum(c) || c == '-'; }))
      return false;
    at = dot + 1;
  }
  return true;
}

}  // namespace umpteenth::apis
