// OpenAPI v3 documents of a group version. kubectl takes the kinds' fields from the schemas, and
// whether the server validates fields from the `patch` operation's fieldValidation parameter; both
// are found by x-kubernetes-group-version-kind (an object in paths, a list in schemas).
#include <algorithm>

#include "apis/lifecycle.h"
#include "apis/metadata.h"
#include "apis/serve.h"

namespace umpteenth::apis {
namespace {

constexpr char kObjectMeta[] = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
constexpr char kListMeta[] = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
constexpr char kStatus[] = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

json::Value reference(const std::string& name) {
  return json::Value::object({{"$ref", "#/components/schemas/" + name}});
}

std::string schema_name(const Kind& kind) {
  if (kind.group.empty()) return "io.k8s.api.core.v1." + kind.kind;
  return "dev.umpteenth." + kind.version + "." + kind.kind;
}

json::Value gvk(const Kind& kind, const std::string& suffix = "") {
  return json::Value::object(
      {{"group", kind.group}, {"version", kind.version}, {"kind", kind.kind + suffix}});
}

json::Value query(const char* name, const char* type, const char* description) {
  return json::Value::object({{"name", name},
                              {"in", "query"},
                              {"description", description},
                              {"schema", json::Value::object({{"type", type}})}});
}

json::Value path_parameter(const char* name) {
  return json::Value::object({{"name", name},
                              {"in", "path"},
                              {"required", true},
                              {"schema", json::Value::object({{"type", "string"}})}});
}

json::Value content(std::initializer_list<const char*> types, const std::string& schema) {
  json::Value all = json::Value::object();
  for (const char* type : types)
    all.set(type, json::Value::object({{"schema", reference(schema)}}));
  return json::Value::object({{"content", std::move(all)}});
}

json::Value operation(const Kind& kind, const char* action, const std::string& answer) {
  json::Value ok = content({"application/json"}, answer);
  ok.set("description", "OK");
  json::Value made = json::Value::object({{"description", std::string(action) + " " + kind.kind},
                                          {"operationId", std::string(action) + kind.kind},
                                          {"x-kubernetes-action", action},
                                          {"x-kubernetes-group-version-kind", gvk(kind)},
                                          {"parameters", json::Value::array()}});
  made["responses"].set("200", std::move(ok));
  return made;
}

json::Value write(const Kind& kind, const char* action, std::initializer_list<const char*> types) {
  json::Value made = operation(kind, action, schema_name(kind));
  json::Value& parameters = made["parameters"];
  parameters.push_back(query("dryRun", "string", "All: everything but keeping it."));
  parameters.push_back(query("fieldManager", "string", "Who writes, for managedFields."));
  parameters.push_back(query("fieldValidation", "string",
                             "Unknown fields: Ignore drops them, Warn (default) says so, Strict "
                             "refuses."));
  if (std::string_view(action) == "patch")
    parameters.push_back(query("force", "boolean", "Apply takes over fields of others."));
  made.set("requestBody", content(types, schema_name(kind)));
  return made;
}

bool can(const Kind& kind, const char* verb) {
  return std::find(kind.verbs.begin(), kind.verbs.end(), verb) != kind.verbs.end();
}

json::Value collection(const Kind& kind) {
  json::Value path = json::Value::object();
  json::Value list = operation(kind, "list", schema_name(kind) + "List");
  for (const char* name :
       {"labelSelector", "fieldSelector", "continue", "resourceVersion", "resourceVersionMatch"})
    list["parameters"].push_back(query(name, "string", "As in Kubernetes."));
  for (const char* name : {"limit", "timeoutSeconds"})
    list["parameters"].push_back(query(name, "integer", "As in Kubernetes."));
  for (const char* name : {"watch", "allowWatchBookmarks"})
    list["parameters"].push_back(query(name, "boolean", "As in Kubernetes."));
  path.set("get", std::move(list));
  if (can(kind, "create")) path.set("post", write(kind, "post", {"application/json"}));
  if (can(kind, "deletecollection"))
    path.set("delete", operation(kind, "deletecollection", kStatus));
  return path;
}

json::Value item(const Kind& kind) {
  json::Value path = json::Value::object({{"get", operation(kind, "get", schema_name(kind))}});
  if (can(kind, "update"))
    path.set("put", write(kind, "put", {"application/json", "application/yaml"}));
  if (can(kind, "patch"))
    path.set("patch", write(kind, "patch",
                            {"application/json-patch+json", "application/merge-patch+json",
                             "application/apply-patch+yaml"}));
  if (can(kind, "delete")) path.set("delete", operation(kind, "delete", kStatus));
  return path;
}

void add_paths(json::Value& paths, const Kind& kind) {
  const std::string root = kind.group.empty() ? "/api/v1" : "/apis/" + kind.api_version();
  std::string base = root + "/" + kind.plural;
  json::Value parameters = json::Value::array();
  if (kind.namespaced()) {
    json::Value everywhere = json::Value::object({{"get", collection(kind).get("get")}});
    paths.set(base, std::move(everywhere));
    base = root + "/namespaces/{namespace}/" + kind.plural;
    parameters.push_back(path_parameter("namespace"));
  }
  json::Value many = collection(kind);
  if (!parameters.empty()) many.set("parameters", parameters);
  paths.set(base, std::move(many));
  parameters.push_back(path_parameter("name"));
  json::Value one = item(kind);
  one.set("parameters", parameters);
  paths.set(base + "/{name}", one);
  if (!kind.group.empty() && kind.status_schema.is_object()) {
    one.erase("delete");
    paths.set(base + "/{name}/status", std::move(one));
  }
}

void add_schemas(json::Value& schemas, const Kind& kind) {
  json::Value schema = object_schema(kind);
  schema.set("description", kind.description);
  json::Value& properties = schema["properties"];
  properties["apiVersion"].set("description", "Group and version: " + kind.api_version() + ".");
  properties["kind"].set("description", "Kind: " + kind.kind + ".");
  // allOf, since a $ref may not stand beside a description.
  properties.set("metadata",
                 json::Value::object({{"description", "Standard object metadata."},
                                      {"allOf", json::Value::array({reference(kObjectMeta)})},
                                      {"default", json::Value::object()}}));
  schema.set("x-kubernetes-group-version-kind", json::Value::array({gvk(kind)}));
  schemas.set(schema_name(kind), std::move(schema));

  const json::Value text = json::Value::object({{"type", "string"}});
  json::Value items = json::Value::object({{"type", "array"},
                                           {"description", "The objects."},
                                           {"items", reference(schema_name(kind))}});
  json::Value list =
      json::Value::object({{"type", "object"}, {"description", "A list of " + kind.kind + "."}});
  json::Value& members = list["properties"];
  members.set("apiVersion", text);
  members.set("kind", text);
  members.set("metadata", reference(kListMeta));
  members.set("items", std::move(items));
  list.set("required", json::Value::array({"items"}));
  list.set("x-kubernetes-group-version-kind", json::Value::array({gvk(kind, "List")}));
  schemas.set(schema_name(kind) + "List", std::move(list));
}

void add_common_schemas(json::Value& schemas) {
  schemas.set(kObjectMeta, metadata_schema());
  const auto object = [](const char* description,
                         std::initializer_list<std::pair<const char*, const char*>> fields) {
    json::Value made = json::Value::object({{"type", "object"}, {"description", description}});
    for (const auto& [name, type] : fields)
      made["properties"].set(name, json::Value::object({{"type", type}}));
    return made;
  };
  schemas.set(kListMeta, object("Metadata of a list.", {{"resourceVersion", "string"},
                                                        {"continue", "string"},
                                                        {"remainingItemCount", "integer"}}));
  schemas.set(kStatus, object("How a request ended.", {{"kind", "string"},
                                                       {"apiVersion", "string"},
                                                       {"metadata", "object"},
                                                       {"status", "string"},
                                                       {"message", "string"},
                                                       {"reason", "string"},
                                                       {"details", "object"},
                                                       {"code", "integer"}}));
}

json::Value document(const std::vector<const Kind*>& all) {
  json::Value made = json::Value::object(
      {{"openapi", "3.0.0"},
       {"info", json::Value::object({{"title", "Umpteenth"}, {"version", UMPTEENTH_VERSION}})}});
  json::Value paths = json::Value::object(), schemas = json::Value::object();
  for (const Kind* k : all) {
    add_paths(paths, *k);
    add_schemas(schemas, *k);
  }
  add_common_schemas(schemas);
  made.set("paths", std::move(paths));
  made["components"].set("schemas", std::move(schemas));
  return made;
}

}  // namespace

json::Value openapi_v3() { return document(kinds()); }
json::Value core_openapi_v3() { return document({&namespace_kind(), &event_kind()}); }

}  // namespace umpteenth::apis
