#include "store/codec.h"

#include "apis/kind.h"
#include "apis/yaml.h"
#include "base/error.h"

namespace umpteenth::store {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::invalid, why); }

void check_field(std::string_view field, const std::string& found, const std::string& wanted) {
  if (found != wanted)
    refuse(std::string(field) + ": " + json::quote(found) +
           " does not fit the file's path, which says " + json::quote(wanted));
}

}  // namespace

std::string file_text(const json::Value& file_part) { return apis::to_yaml(file_part); }

json::Value parse_file(const Key& key, std::string_view text) {
  json::Value object = apis::parse_yaml_one(text);
  if (!object.is_object()) refuse("the file is not a YAML mapping");
  const apis::Kind* kind = apis::find_kind(key.kind);
  if (!kind || kind->storage != apis::Storage::git)
    refuse("no kind kept in git has the plural " + json::quote(key.kind));
  check_field("apiVersion", object.get_string("apiVersion"), apis::kGroupVersion);
  check_field("kind", object.get_string("kind"), kind->kind);
  if (!object.get("metadata").is_object()) refuse("metadata: Required value");
  json::Value& metadata = *object.find("metadata");
  check_field("metadata.name", metadata.get_string("name"), key.name);
  if (kind->namespaced() && !metadata.find("namespace")) metadata.set("namespace", key.ns);
  check_field("metadata.namespace", metadata.get_string("namespace"), key.ns);
  if (kind->namespaced() == key.ns.empty())
    refuse(kind->kind + " belongs " +
           (kind->namespaced() ? "into a workspace's folder" : "into the folder _cluster"));
  metadata.erase("resourceVersion");
  object.erase("status");
  return object;
}

}  // namespace umpteenth::store
