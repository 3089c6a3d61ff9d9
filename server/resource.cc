#include "server/resource.h"

#include <algorithm>

#include "apis/object.h"

namespace umpteenth::server {
namespace {

std::vector<Resource> make_resources() {
  std::vector<Resource> all;
  for (const apis::Kind* kind : apis::kinds())
    all.push_back({kind, apis::kGroup, apis::kVersion, kind->plural});
  all.push_back({&apis::namespace_kind(), "", "v1", "workspaces"});
  all.push_back({&apis::event_kind(), "", "v1", apis::event_kind().plural});
  return all;
}

}  // namespace

const std::vector<Resource>& resources() {
  static const std::vector<Resource> all = make_resources();
  return all;
}

const Resource* find_resource(std::string_view group, std::string_view version,
                              std::string_view plural) {
  for (const Resource& r : resources())
    if (r.group == group && r.version == version && r.kind->plural == plural) return &r;
  return nullptr;
}

bool Resource::offers(std::string_view verb) const {
  return std::find(kind->verbs.begin(), kind->verbs.end(), verb) != kind->verbs.end();
}

json::Value namespace_of_workspace(const json::Value& workspace) {
  const json::Value& from = workspace.get("metadata");
  json::Value meta = json::Value::object();
  for (const char* field : {"name", "uid", "resourceVersion", "creationTimestamp",
                            "deletionTimestamp", "labels", "annotations"})
    if (const json::Value* v = from.find(field)) meta.set(field, *v);
  meta["labels"].set("kubernetes.io/metadata.name", from.get("name"));
  const char* phase = apis::deleting(workspace) ? "Terminating" : "Active";
  return json::Value::object({{"kind", "Namespace"},
                              {"apiVersion", "v1"},
                              {"metadata", std::move(meta)},
                              {"spec", json::Value::object()},
                              {"status", json::Value::object({{"phase", phase}})}});
}

json::Value Resource::object_of(const store::Record& record) const {
  return is_view() ? namespace_of_workspace(record.parse()) : record.parse();
}

std::string Resource::text_of(const store::Record& record) const {
  return is_view() ? object_of(record).dump() : record.json;
}

apis::ErrorSubject Resource::subject(std::string_view name) const {
  return {group, kind->plural, kind->kind, std::string(name)};
}

Error not_found(const Resource& resource, std::string_view name) {
  return Error(Code::not_found, resource.qualified() + " " + json::quote(name) + " not found");
}

Error already_exists(const Resource& resource, std::string_view name) {
  return Error(Code::already_exists,
               resource.qualified() + " " + json::quote(name) + " already exists");
}

Error conflict(const Resource& resource, std::string_view name, std::string_view why) {
  return Error(Code::conflict, "Operation cannot be fulfilled on " + resource.qualified() + " " +
                                   json::quote(name) + ": " + std::string(why));
}

Error modified(const Resource& resource, std::string_view name) {
  return conflict(resource, name,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

Error no_such_route() {
  return Error(Code::not_found, "the server could not find the requested resource");
}

Error method_not_allowed() {
  return Error(Code::method_not_allowed,
               "the server does not allow this method on the requested resource");
}

Error invalid_field(const std::string& field, const std::string& message,
                    const std::string& reason) {
  return Error(Code::invalid, field + ": " + message, {{field, message, reason}});
}

}  // namespace umpteenth::server
