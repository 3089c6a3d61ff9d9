#include "server/write.h"

#include "apis/apply.h"
#include "apis/object.h"
#include "apis/patch.h"
#include "apis/workspace.h"
#include "apis/yaml.h"
#include "server/admission.h"
#include "server/effect.h"
#include "server/run_writes.h"

namespace umpteenth::server {
namespace {

constexpr int kMostTries = 8;  // of a patch that others' writes overtook
constexpr size_t kMaxBody = 3U << 20;

bool writes_status(const Call& call) { return call.target.subresource == "status"; }

std::string message_of(std::string_view verb, const store::Key& key) {
  return std::string(verb) + " " + store::to_string(key);
}

void take_warnings(Call& call, std::vector<std::string> warnings) {
  call.warnings.insert(call.warnings.end(), warnings.begin(), warnings.end());
}

apis::WriteOptions options_for(const Env& env, const Call& call, const WriteQuery& query) {
  apis::WriteOptions options = query.options;
  const auto found = env.finalizers.find(call.resource().kind->plural);
  if (found != env.finalizers.end()) options.finalizers = found->second;
  return options;
}

// A create's document, validated, sealed and with its first owner.
json::Value admit_create(Env& env, Call& call, const WriteQuery& query, json::Value object) {
  const json::Value given = object;
  seal_values(env, call, object, nullptr);
  apis::Admitted admitted;
  try {
    admitted = apis::prepare_create(*call.resource().kind, std::move(object),
                                    options_for(env, call, query));
  } catch (const Error& e) {
    throw without_values(e, given);
  }
  take_warnings(call, std::move(admitted.warnings));
  return std::move(admitted.object);
}

struct Created {
  store::RecordPtr record;  // null for a dry run
  json::Value object;       // of a dry run
};

Created commit_create(Env& env, Call& call, const WriteQuery& query, const json::Value& object,
                      const std::string& message = "") {
  const bool generated = apis::name_of(object).empty();
  for (int attempt = 1;; ++attempt) {
    json::Value admitted = admit_create(env, call, query, object);
    call.target.name = apis::name_of(admitted);
    const store::Key key = call.key();
    const bool last = !generated || attempt == kMostTries;
    if (env.store.find(key)) {
      if (last) throw already_exists(call.resource(), key.name);
      continue;
    }
    if (query.dry_run) return {nullptr, std::move(admitted)};
    try {
      return {env.store.commit_one({store::Verb::create, key, std::move(admitted), {}},
                                   call.who.username,
                                   message.empty() ? message_of("create", key) : message),
              {}};
    } catch (const Error& e) {
      if (e.code() != Code::already_exists) throw;
      if (last) throw already_exists(call.resource(), key.name);
    }
  }
}

// A Namespace is made as the Workspace that it is a view of.
http::Response create_namespace(Env& env, Call& call, const WriteQuery& query,
                                const json::Value& object) {
  json::Value meta = object.get("metadata");
  if (json::Value* labels = meta.find("labels")) labels->erase("kubernetes.io/metadata.name");
  json::Value workspace = apis::make_object(apis::workspace_kind(), "", "", json::Value::object());
  workspace.set("metadata", std::move(meta));
  Target target;
  target.resource = find_resource(apis::kGroup, apis::kVersion, "workspaces");
  Call inner{call.http, call.who, target, call.now, {}};
  const Created made = commit_create(env, inner, query, workspace);
  take_warnings(call, inner.warnings);
  return answer_object(call, 201,
                       namespace_of_workspace(made.record ? made.record->parse() : made.object));
}

json::Value admit_update(Env& env, Call& call, const WriteQuery& query, const json::Value& old,
                         json::Value desired) {
  const apis::Kind& kind = *call.resource().kind;
  const json::Value given = desired;
  call.warnings.clear();  // of a try before
  apis::Admitted admitted;
  try {
    if (writes_status(call)) {
      admitted = apis::prepare_status_update(kind, old, std::move(desired), query.options);
    } else {
      seal_values(env, call, desired, &old);
      admitted = apis::prepare_update(kind, old, std::move(desired), options_for(env, call, query));
    }
  } catch (const Error& e) {
    throw without_values(e, given);
  }
  take_warnings(call, std::move(admitted.warnings));
  if (call.resource().stored_as == "runs") note_canceller(call, old, admitted.object);
  return std::move(admitted.object);
}

store::Change change_of(const store::Key& key, const json::Value& object, uint64_t revision) {
  if (apis::ready_to_remove(object)) return {store::Verb::remove, key, {}, revision};
  return {store::Verb::update, key, object, revision};
}

}  // namespace

http::Response create(Env& env, Call& call, const WriteQuery& query, const json::Value& object,
                      const std::string& message) {
  const Created made = commit_create(env, call, query, object, message);
  return made.record ? answer_record(call, 201, *made.record)
                     : answer_object(call, 201, made.object);
}

http::Response update(Env& env, Call& call, const WriteQuery& query, const Mutate& mutate,
                      const std::string& message) {
  const store::Key key = call.key();
  for (int attempt = 1;; ++attempt) {
    const auto record = env.store.find(key);
    if (!record) throw not_found(call.resource(), key.name);
    const json::Value old = record->parse();
    json::Value now = admit_update(env, call, query, old, mutate(old));
    if (without_effect(old, now)) return answer_record(call, 200, *record);
    if (query.dry_run) {
      now["metadata"].set("resourceVersion", std::to_string(record->revision));
      return answer_object(call, 200, now);
    }
    try {
      const char* verb = writes_status(call) ? "update status of" : "update";
      const auto stored =
          env.store.commit_one(change_of(key, now, record->revision), call.who.username,
                               message.empty() ? message_of(verb, key) : message);
      return answer_record(call, 200, *stored);
    } catch (const Error& e) {
      if (e.code() == Code::not_found) throw not_found(call.resource(), key.name);
      if (e.code() != Code::conflict) throw;
      if (attempt == kMostTries) throw modified(call.resource(), key.name);
    }
  }
}

namespace {

json::Value patch_body(const Call& call, BodyType type) {
  if (type == BodyType::apply_patch) return apis::parse_yaml_one(call.http.body, kMaxBody);
  return json::parse(call.http.body, {64, kMaxBody});
}

[[noreturn]] void unknown_patch() {
  throw Error(Code::unsupported_media_type,
              "the body of the request was in an unknown format - accepted media types include: "
              "application/json-patch+json, application/merge-patch+json, "
              "application/apply-patch+yaml");
}

json::Value merged(const Call& call, const json::Value& old, const json::Value& patch) {
  json::Value object = old;
  apis::merge_patch(object, patch);
  if (!object.get("metadata").is_object())
    throw Error(Code::bad_request, "a patch must leave metadata an object");
  if (call.resource().stored_as == "secrets") forget_sealed_values(patch, object);
  return object;
}

// The document as kubectl's annotation may keep it: a Secret's values by their keys only.
json::Value without_secrets(json::Value applied) {
  if (json::Value* spec = applied.find("spec"))
    if (json::Value* data = spec->find("stringData"); data && data->is_object())
      for (json::Member& m : data->members()) m.value = "sealed";
  return applied;
}

// The applied document laid over what is there. A Secret is sealed first, so that its fields are
// owned as they are kept; the annotation goes on naming what was given.
json::Value apply_to(Env& env, const Call& call, const WriteQuery& query, const json::Value* old,
                     const json::Value& given) {
  json::Value mine = given;
  seal_values(env, call, mine, old);
  const apis::ApplyOptions options{query.options.field_manager, query.force, call.now};
  json::Value merged = apis::apply(*call.resource().kind, old, mine, options).object;
  if (call.resource().stored_as != "secrets") return merged;
  merged.set("status", mine.get("status"));
  if (old && options.manager == "kubectl" && !apis::annotation_of(*old, apis::kLastApplied).empty())
    merged["metadata"]["annotations"].set(apis::kLastApplied, without_secrets(given).dump() + "\n");
  return merged;
}

http::Response apply_patch(Env& env, Call& call, WriteQuery query, json::Value given) {
  if (writes_status(call))
    throw Error(Code::unsupported_media_type,
                "status is not applied: patch it with application/merge-patch+json");
  fit_to_path(call, given);
  query.options.managed_fields_made = true;
  if (!env.store.find(call.key())) {
    authorize(call, "create");
    require_workspace(env, call);
    if (call.resource().stored_as == "runs") return create_run(env, call, query, given);
    return create(env, call, query, apply_to(env, call, query, nullptr, given));
  }
  return update(env, call, query,
                [&](const json::Value& old) { return apply_to(env, call, query, &old, given); });
}

}  // namespace

http::Response create_object(Env& env, Call& call) {
  const WriteQuery query = read_write_query(call);
  json::Value object = read_body(call.http, call.resource().group.empty());
  fit_to_path(call, object);
  if (!object.at_path({"metadata", "resourceVersion"}).is_null() &&
      !object.get("metadata").get_string("resourceVersion").empty())
    throw Error(Code::bad_request, "resourceVersion should not be set on objects to be created");
  require_workspace(env, call);
  if (call.resource().stored_as == "runs") return create_run(env, call, query, object);
  if (call.resource().is_view()) return create_namespace(env, call, query, object);
  return create(env, call, query, object);
}

http::Response replace_object(Env& env, Call& call) {
  const WriteQuery query = read_write_query(call);
  json::Value object = read_body(call.http, false);
  fit_to_path(call, object);
  if (!env.store.find(call.key())) throw not_found(call.resource(), call.target.name);
  if (object.get("metadata").get_string("resourceVersion").empty())
    throw invalid_field("metadata.resourceVersion",
                        "Invalid value: 0x0: must be specified for an update", "FieldValueInvalid");
  return update(env, call, query, [&](const json::Value&) { return object; });
}

http::Response patch_object(Env& env, Call& call) {
  const BodyType type = body_type(call.http);
  if (type != BodyType::merge_patch && type != BodyType::json_patch &&
      type != BodyType::apply_patch)
    unknown_patch();
  const WriteQuery query = read_write_query(call);
  json::Value patch = patch_body(call, type);
  if (type == BodyType::apply_patch) return apply_patch(env, call, query, std::move(patch));
  if (type == BodyType::merge_patch && !patch.is_object())
    throw Error(Code::bad_request,
                std::string("a merge patch must be an object, found ") + patch.type_name());
  return update(env, call, query, [&](const json::Value& old) {
    if (type == BodyType::merge_patch) return merged(call, old, patch);
    json::Value object = old;
    apis::json_patch(object, patch);
    return object;
  });
}

}  // namespace umpteenth::server
