// Discovery, in the form that old clients read and in the aggregated one.
#include "apis/serve.h"

namespace umpteenth::apis {
namespace {

const std::vector<std::string> kStatusVerbs = {"get", "patch", "update"};

bool has_status(const Kind& kind) { return kind.status_schema.is_object() && !kind.group.empty(); }

std::vector<const Kind*> core_kinds() { return {&namespace_kind(), &event_kind()}; }

void set_names(json::Value& resource, const Kind& kind) {
  if (!kind.short_names.empty()) resource.set("shortNames", json::Value::strings(kind.short_names));
  if (!kind.categories.empty()) resource.set("categories", json::Value::strings(kind.categories));
}

json::Value resource_list(const std::string& group_version, const std::vector<const Kind*>& all) {
  json::Value resources = json::Value::array();
  for (const Kind* k : all) {
    json::Value resource = json::Value::object({{"name", k->plural},
                                                {"singularName", k->singular},
                                                {"namespaced", k->namespaced()},
                                                {"kind", k->kind},
                                                {"verbs", json::Value::strings(k->verbs)}});
    set_names(resource, *k);
    resources.push_back(std::move(resource));
    if (has_status(*k))
      resources.push_back(json::Value::object({{"name", k->plural + "/status"},
                                               {"singularName", ""},
                                               {"namespaced", k->namespaced()},
                                               {"kind", k->kind},
                                               {"verbs", json::Value::strings(kStatusVerbs)}}));
  }
  return json::Value::object({{"kind", "APIResourceList"},
                              {"apiVersion", "v1"},
                              {"groupVersion", group_version},
                              {"resources", std::move(resources)}});
}

json::Value aggregated(const std::string& group, const std::string& version,
                       const std::vector<const Kind*>& all) {
  json::Value resources = json::Value::array();
  for (const Kind* k : all) {
    const json::Value gvk =
        json::Value::object({{"group", group}, {"version", version}, {"kind", k->kind}});
    json::Value resource =
        json::Value::object({{"resource", k->plural},
                             {"responseKind", gvk},
                             {"scope", k->namespaced() ? "Namespaced" : "Cluster"},
                             {"singularResource", k->singular},
                             {"verbs", json::Value::strings(k->verbs)}});
    set_names(resource, *k);
    if (has_status(*k))
      resource.set("subresources", json::Value::array({json::Value::object(
                                       {{"subresource", "status"},
                                        {"responseKind", gvk},
                                        {"verbs", json::Value::strings(kStatusVerbs)}})}));
    resources.push_back(std::move(resource));
  }
  json::Value metadata = json::Value::object({{"creationTimestamp", nullptr}});
  if (!group.empty()) metadata.set("name", group);
  json::Value served = json::Value::object({{"version", version}});
  served.set("resources", std::move(resources));
  served.set("freshness", "Current");
  json::Value item = json::Value::object({{"metadata", std::move(metadata)}});
  item["versions"].push_back(std::move(served));
  json::Value list = json::Value::object({{"kind", "APIGroupDiscoveryList"},
                                          {"apiVersion", "apidiscovery.k8s.io/v2"},
                                          {"metadata", json::Value::object()}});
  list["items"].push_back(std::move(item));
  return list;
}

}  // namespace

json::Value legacy_resource_list() { return resource_list(kGroupVersion, kinds()); }
json::Value aggregated_discovery() { return aggregated(kGroup, kVersion, kinds()); }
json::Value core_resource_list() { return resource_list("v1", core_kinds()); }
json::Value core_aggregated_discovery() { return aggregated("", "v1", core_kinds()); }

}  // namespace umpteenth::apis
