#include "apis/lifecycle.h"

#include "apis/managed_fields.h"
#include "apis/metadata.h"
#include "apis/object.h"
#include "apis/schema.h"
#include "apis/serve.h"
#include "base/crypto.h"

namespace umpteenth::apis {
namespace {

constexpr size_t kMaxNamed = 50;  // unknown fields that one answer names

std::string subject(const Kind& kind, const json::Value& object) {
  const std::string name = name_of(object);
  return kind.group_resource() + " " + json::quote(name);
}

void throw_if_invalid(const Kind& kind, const json::Value& object, std::vector<Cause> causes) {
  if (causes.empty()) return;
  std::string list;
  for (const Cause& c : causes) list += (list.empty() ? "" : ", ") + c.field + ": " + c.message;
  if (causes.size() > 1) list = "[" + list + "]";
  const std::string kind_name = kind.group.empty() ? kind.kind : kind.kind + "." + kind.group;
  std::string message =
      kind_name + " " + json::quote(name_of(object)) + " is invalid: " + std::move(list);
  throw Error(Code::invalid, std::move(message), std::move(causes));
}

void check_type(const Kind& kind, const json::Value& object) {
  if (!object.is_object())
    throw Error(Code::bad_request,
                std::string("the body must be a JSON object, found ") + object.type_name());
  const std::string version = object.get_string("apiVersion"), name = object.get_string("kind");
  if (name.empty()) throw Error(Code::bad_request, "Object 'Kind' is missing in the body");
  if (version.empty()) throw Error(Code::bad_request, "Object 'apiVersion' is missing in the body");
  if (name != kind.kind)
    throw Error(Code::bad_request, "the kind in the data (" + name.substr(0, 100) +
                                       ") does not match the expected kind (" + kind.kind + ")");
  if (version != kind.api_version())
    throw Error(Code::bad_request, "the API version in the data (" + version.substr(0, 100) +
                                       ") does not match the expected API version (" +
                                       kind.api_version() + ")");
}

json::Value whole_schema(const Kind& kind) {
  json::Value properties = json::Value::object();
  if (kind.other_schema.is_object()) properties = kind.other_schema.get("properties");
  const json::Value text = json::Value::object({{"type", "string"}});
  properties.set("apiVersion", text);
  properties.set("kind", text);
  properties.set("metadata", metadata_schema());
  if (kind.spec_schema.is_object()) properties.set("spec", kind.spec_schema);
  if (kind.status_schema.is_object()) properties.set("status", kind.status_schema);
  json::Value made =
      json::Value::object({{"type", "object"}, {"properties", std::move(properties)}});
  if (!kind.spec_schema.get("required").empty()) made.set("required", json::Value::array({"spec"}));
  return made;
}

// Removes unknown fields and answers as the client asked.
void handle_unknown(const Kind& kind, json::Value& object, const WriteOptions& options,
                    std::vector<std::string>& warnings) {
  std::vector<std::string> unknown = prune_unknown(object_schema(kind), object, "");
  if (unknown.empty() || options.field_validation == FieldValidation::ignore) return;
  const size_t more = unknown.size() > kMaxNamed ? unknown.size() - kMaxNamed : 0;
  if (more > 0) unknown.resize(kMaxNamed);
  std::vector<std::string> texts;
  std::vector<Cause> causes;
  for (const std::string& path : unknown) {
    texts.push_back("unknown field " + json::quote(path));
    causes.push_back({path, "unknown field", "FieldValueInvalid"});
  }
  if (more > 0) texts.push_back("and " + std::to_string(more) + " more unknown fields");
  if (options.field_validation == FieldValidation::warn) {
    warnings.insert(warnings.end(), texts.begin(), texts.end());
    return;
  }
  std::string list;
  for (const std::string& t : texts) list += (list.empty() ? "" : ", ") + t;
  throw Error(Code::bad_request,
              kind.kind + " in version " + json::quote(kind.version) + " cannot be handled as a " +
                  kind.kind + ": strict decoding error: " + list,
              std::move(causes));
}

void drop_null_metadata(json::Value& object) {
  json::Value& metadata = object["metadata"];
  if (metadata.is_null()) metadata = json::Value::object();
  if (!metadata.is_object()) return;
  std::erase_if(metadata.members(), [](const json::Member& m) {
    return m.value.is_null() || ((m.key == "finalizers" || m.key == "ownerReferences") &&
                                 m.value.is_array() && m.value.empty());
  });
}

// The object with structure, defaults and schema in order; causes collects what is wrong.
void shape(const Kind& kind, json::Value& object, const WriteOptions& options, Admitted& out,
           std::vector<Cause>& causes) {
  check_type(kind, object);
  drop_null_metadata(object);
  handle_unknown(kind, object, options, out.warnings);
  apply_defaults(object_schema(kind), object);
  validate(object_schema(kind), object, "", causes);
}

bool wrong_types(const std::vector<Cause>& causes) {
  for (const Cause& c : causes)
    if (c.reason == "FieldValueTypeInvalid") return true;
  return false;
}

std::string generated(const Kind& kind, std::string_view prefix) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string name(prefix.substr(0, kind.max_name - 5));
  for (const char c : crypto::random_bytes(5))
    name += kLetters[static_cast<unsigned char>(c) % kLetters.size()];
  return name;
}

// What the server alone decides is taken from `old`, or made for a new object.
void own_metadata(json::Value& object, const json::Value& old) {
  json::Value& metadata = object["metadata"];
  for (const char* key : {"uid", "resourceVersion", "generation", "creationTimestamp",
                          "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"}) {
    const json::Value* value = old.get("metadata").find(key);
    if (value)
      metadata.set(key, *value);
    else
      metadata.erase(key);
  }
  metadata.erase("selfLink");
}

void own_status(const Kind& kind, json::Value& object, const json::Value* old) {
  if (kind.status_from_admission) return;
  const json::Value* status = old ? old->find("status") : nullptr;
  if (status)
    object.set("status", *status);
  else
    object.erase("status");
}

void check_versions(const Kind& kind, const json::Value& object, const json::Value& old) {
  const std::string given = object.get("metadata").get_string("resourceVersion");
  const auto conflict = [&](const std::string& why) {
    return Error(Code::conflict,
                 "Operation cannot be fulfilled on " + subject(kind, old) + ": " + why);
  };
  if (!given.empty() && given != "0" && given != old.get("metadata").get_string("resourceVersion"))
    throw conflict(
        "the object has been modified; please apply your changes to the latest version "
        "and try again");
  const std::string uid = uid_of(object);
  if (!uid.empty() && uid != uid_of(old))
    throw conflict("Precondition failed: UID in precondition: " + uid.substr(0, 64) +
                   ", UID in object meta: " + uid_of(old));
}

// managedFields as the writer left them (a user may rewrite or clear them); true: cleared.
bool take_managed_fields(json::Value& object, const json::Value& old) {
  json::Value& metadata = object["metadata"];
  const json::Value* given = metadata.find("managedFields");
  if (given && clears_managed_fields(*given)) {
    metadata.erase("managedFields");
    return !old.get("metadata").get("managedFields").empty();
  }
  if (given) return false;
  if (const json::Value* kept = old.get("metadata").find("managedFields"))
    metadata.set("managedFields", *kept);
  return false;
}

// Same order of metadata for every object, so that files and diffs stay quiet.
void arrange(const Kind& kind, json::Value& object) {
  json::Value sorted = json::Value::object();
  for (const char* key : {"apiVersion", "kind", "metadata", "spec", "status"})
    if (json::Value* v = object.find(key)) sorted.members().push_back({key, std::move(*v)});
  for (json::Member& m : object.members())
    if (!sorted.find(m.key)) sorted.members().push_back(std::move(m));
  json::Value metadata = json::Value::object();
  json::Value& given = sorted["metadata"];
  for (const json::Member& p : metadata_schema().get("properties").members())
    if (json::Value* v = given.find(p.key)) metadata.members().push_back({p.key, std::move(*v)});
  sorted.set("metadata", std::move(metadata));
  if (!kind.namespaced()) sorted["metadata"].erase("namespace");
  object = std::move(sorted);
}

}  // namespace

const json::Value& object_schema(const Kind& kind) {
  static const auto made = [] {
    std::vector<std::pair<const Kind*, json::Value>> all;
    for (const Kind* k : kinds()) all.emplace_back(k, whole_schema(*k));
    for (const Kind* k : {&namespace_kind(), &event_kind()}) all.emplace_back(k, whole_schema(*k));
    return all;
  }();
  for (const auto& [known, schema] : made)
    if (known == &kind) return schema;
  thread_local json::Value other;  // a kind that a test made
  other = whole_schema(kind);
  return other;
}

Admitted prepare_create(const Kind& kind, json::Value object, const WriteOptions& options) {
  Admitted out;
  std::vector<Cause> causes;
  if (object.is_object() && !kind.status_from_admission) object.erase("status");
  shape(kind, object, options, out, causes);
  if (!wrong_types(causes)) {
    json::Value& metadata = object["metadata"];
    if (!metadata.get_string("resourceVersion").empty())
      throw Error(Code::bad_request, "resourceVersion should not be set on objects to be created");
    if (metadata.get_string("name").empty() && !metadata.get_string("generateName").empty())
      metadata.set("name", generated(kind, metadata.get_string("generateName")));
    const std::string generate_name = metadata.get_string("generateName");
    own_metadata(object, json::Value());
    if (!generate_name.empty()) metadata.set("generateName", generate_name);
    check_metadata(kind, object, causes);
    if (kind.check) kind.check(object, nullptr, causes);
  }
  throw_if_invalid(kind, object, std::move(causes));
  json::Value& metadata = object["metadata"];
  metadata.set("uid", options.make_uid ? options.make_uid() : crypto::uuid4());
  metadata.set("generation", 1);
  metadata.set("creationTimestamp", format_time(options.now));
  if (!options.managed_fields_made) metadata.erase("managedFields");
  if (!options.managed_fields_made && !options.field_manager.empty())
    record_update(kind, object, {options.field_manager, "Update", ""}, owned_fields(kind, object),
                  options.now);
  for (const std::string& finalizer : options.finalizers) add_finalizer(object, finalizer);
  arrange(kind, object);
  out.object = std::move(object);
  return out;
}

Admitted prepare_update(const Kind& kind, const json::Value& old, json::Value object,
                        const WriteOptions& options) {
  Admitted out;
  std::vector<Cause> causes;
  if (object.is_object() && !kind.status_from_admission) object.erase("status");
  shape(kind, object, options, out, causes);
  bool cleared = false;
  if (!wrong_types(causes)) {
    check_versions(kind, object, old);
    own_metadata(object, old);
    own_status(kind, object, &old);
    cleared = take_managed_fields(object, old);
    if (!deleting(old))
      for (const std::string& finalizer : options.finalizers) add_finalizer(object, finalizer);
    check_metadata(kind, object, causes);
    check_metadata_update(object, old, causes);
    if (kind.check) kind.check(object, &old, causes);
  }
  throw_if_invalid(kind, object, std::move(causes));
  if (!(object.get("spec") == old.get("spec")))
    object["metadata"].set("generation", generation_of(old) + 1);
  const json::Value before = owned_fields(kind, old), after = owned_fields(kind, object);
  const json::Value changed = changed_fields(kind, old, object);
  if (!cleared && !options.managed_fields_made && (!changed.empty() || !(before == after)))
    record_update(kind, object,
                  {options.field_manager, options.field_manager.empty() ? "" : "Update", ""},
                  changed, options.now);
  arrange(kind, object);
  out.object = std::move(object);
  return out;
}

Admitted prepare_status_update(const Kind& kind, const json::Value& old, json::Value object,
                               const WriteOptions& options) {
  Admitted out;
  std::vector<Cause> causes;
  check_type(kind, object);
  check_versions(kind, object, old);
  json::Value merged = old;
  if (const json::Value* status = object.find("status"); status && !status->is_null())
    merged.set("status", *status);
  else
    merged.erase("status");
  handle_unknown(kind, merged, options, out.warnings);
  if (json::Value* status = merged.find("status")) {
    apply_defaults(kind.status_schema, *status);
    validate(kind.status_schema, *status, "status", causes);
  }
  if (!wrong_types(causes) && kind.check) kind.check(merged, &old, causes);
  throw_if_invalid(kind, merged, std::move(causes));
  if (!options.field_manager.empty()) {
    const json::Value changed = changed_fields(kind, old, merged, true);
    if (!changed.empty())
      record_update(kind, merged, {options.field_manager, "Update", "status"}, changed,
                    options.now);
  }
  arrange(kind, merged);
  out.object = std::move(merged);
  return out;
}

std::optional<json::Value> prepare_delete(const json::Value& old, Time now) {
  if (old.get("metadata").get("finalizers").empty()) return std::nullopt;
  if (deleting(old)) return old;
  json::Value object = old;
  json::Value& metadata = object["metadata"];
  metadata.set("deletionTimestamp", format_time(now));
  metadata.set("deletionGracePeriodSeconds", 0);
  metadata.set("generation", generation_of(old) + 1);
  return object;
}

}  // namespace umpteenth::apis
