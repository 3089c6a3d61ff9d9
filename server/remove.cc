#include "server/remove.h"

#include <map>

#include "apis/object.h"
#include "server/admission.h"
#include "server/collector.h"
#include "server/read.h"

namespace umpteenth::server {
namespace {

constexpr int kMostTries = 8;

enum class Propagation { background, foreground, orphan };

struct DeleteOptions {
  bool dry_run = false;
  bool cascade = false;  // of a workspace: its content too
  Propagation propagation = Propagation::background;
  std::string uid, revision;  // preconditions
};

Propagation propagation_of(const std::string& text) {
  if (text.empty() || text == "Background") return Propagation::background;
  if (text == "Foreground") return Propagation::foreground;
  if (text == "Orphan") return Propagation::orphan;
  throw invalid_field("propagationPolicy",
                      "Unsupported value: " + json::quote(text) +
                          ": supported values: \"Background\", \"Foreground\", \"Orphan\"",
                      "FieldValueNotSupported");
}

// From the body, the query, or neither.
DeleteOptions read_options(const Call& call) {
  json::Value body = json::Value::object();
  if (!call.http.body.empty()) body = read_body(call.http, true);
  if (!body.is_object())
    throw Error(Code::bad_request,
                std::string("the body must be DeleteOptions, found ") + body.type_name());
  std::vector<std::string> dry;
  for (const auto& [key, value] : call.http.query)
    if (key == "dryRun" && !value.empty()) dry.push_back(value);
  if (const json::Value* given = body.find("dryRun"); given && given->is_array())
    for (const json::Value& value : given->items()) dry.push_back(value.as_string());
  DeleteOptions options;
  options.dry_run = read_dry_run(dry);
  options.propagation = propagation_of(
      body.get_string("propagationPolicy", std::string(call.http.param("propagationPolicy"))));
  options.cascade = flag(call.http, "cascade") || options.propagation == Propagation::foreground;
  options.uid = body.get("preconditions").get_string("uid");
  options.revision = body.get("preconditions").get_string("resourceVersion");
  return options;
}

void check_preconditions(const Call& call, const DeleteOptions& options,
                         const json::Value& object) {
  const auto demand = [&](const std::string& wanted, const std::string& is, const char* what) {
    if (!wanted.empty() && wanted != is)
      throw conflict(call.resource(), call.target.name,
                     std::string("Precondition failed: ") + what + " in precondition: " + wanted +
                         ", " + what + " in object meta: " + is);
  };
  demand(options.uid, apis::uid_of(object), "UID");
  demand(options.revision, object.get("metadata").get_string("resourceVersion"), "ResourceVersion");
}

bool is_workspace(const Call& call) { return call.resource().stored_as == "workspaces"; }

// `3 jobs (a, b, c), 1 secret (t)`; "" where there is nothing.
std::string content_of(const store::Store& store, const std::string& ns) {
  constexpr size_t kMostNames = 5;
  std::string text;
  for (const apis::Kind* kind : apis::kinds()) {
    if (!kind->namespaced()) continue;
    const auto items = store.list({kind->plural, ns, 0, ""}).items;
    if (items.empty()) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(items.size()) + " " +
            (items.size() == 1 ? kind->singular : kind->plural) + " (";
    for (size_t i = 0; i < items.size() && i < kMostNames; ++i)
      text += (i ? ", " : "") + items[i]->key.name;
    text += items.size() > kMostNames ? ", …)" : ")";
  }
  return text;
}

// The workspace as its deletion begins: with its content still there it waits for the collector.
json::Value leave_workspace(Env& env, const Call& call, const DeleteOptions& options,
                            json::Value workspace) {
  const std::string& name = call.target.name;
  if (name == apis::kDefaultWorkspace || name == apis::kSystemWorkspace)
    throw Error(Code::forbidden, call.resource().qualified() + " " + json::quote(name) +
                                     " is forbidden: this workspace may not be deleted");
  if (apis::deleting(workspace)) return workspace;
  const std::string content = content_of(env.store, name);
  if (!content.empty() && !options.cascade)
    throw conflict(call.resource(), name,
                   "it still holds " + content +
                       ", which would be deleted too; delete with --cascade=foreground "
                       "(propagationPolicy Foreground) to delete it with its content");
  apis::add_finalizer(workspace, kContentFinalizer);
  return workspace;
}

// Deleting a Secret takes its mappings out of the workspace's jobs, in the same commit; which jobs
// lose one is said in `warnings`.
void add_job_changes(Env& env, const store::Key& secret, std::vector<store::Change>& changes,
                     std::vector<std::string>& warnings) {
  const std::string quoted = json::quote(secret.name);
  for (const auto& record : env.store.list({"jobs", secret.ns, 0, ""}).items) {
    if (record->json.find(quoted) == std::string::npos) continue;
    json::Value job = record->parse();
    json::Value* mappings = job["spec"].find("secrets");
    if (!mappings || !mappings->is_array()) continue;
    std::string variables;
    const size_t removed = std::erase_if(mappings->items(), [&](const json::Value& m) {
      if (m.get_string("secret") != secret.name) return false;
      variables += (variables.empty() ? "" : ", ") + m.get_string("env");
      return true;
    });
    if (removed == 0) continue;
    warnings.push_back("job " + record->key.name + " no longer maps secret " + secret.name +
                       ": its runs start without " + variables);
    job["metadata"].set("generation", apis::generation_of(job) + 1);
    changes.push_back({store::Verb::update, record->key, std::move(job), record->revision});
  }
}

json::Value success(const Call& call, const json::Value& object) {
  json::Value details = json::Value::object({{"name", call.target.name}});
  if (!call.resource().group.empty()) details.set("group", call.resource().group);
  details.set("kind", call.resource().kind->plural);
  details.set("uid", apis::uid_of(object));
  return json::Value::object({{"kind", "Status"},
                              {"apiVersion", "v1"},
                              {"metadata", json::Value::object()},
                              {"status", "Success"},
                              {"details", std::move(details)}});
}

// What a deletion leaves: the object while finalizers hold it, else a Status.
struct Outcome {
  bool gone = false;
  json::Value document;
};

Outcome try_delete(Env& env, Call& call, const DeleteOptions& options,
                   const store::Record& record) {
  json::Value object = record.parse();
  check_preconditions(call, options, object);
  if (is_workspace(call)) object = leave_workspace(env, call, options, std::move(object));
  const auto marked = apis::prepare_delete(object, call.now);
  const Outcome outcome{!marked, marked ? *marked : success(call, object)};
  std::vector<store::Change> changes = {{marked ? store::Verb::update : store::Verb::remove,
                                         record.key, marked.value_or(json::Value()),
                                         record.revision}};
  std::vector<std::string> warnings;
  if (!marked && record.key.kind == "secrets") add_job_changes(env, record.key, changes, warnings);
  const auto warn = [&] {  // once it is so: a try that another write outran has said nothing
    call.warnings.insert(call.warnings.end(), warnings.begin(), warnings.end());
  };
  if (options.dry_run) warn();
  if (options.dry_run || (marked && *marked == record.parse())) return outcome;
  const std::string uid = apis::uid_of(object);
  if (options.propagation == Propagation::orphan)
    env.collector.orphan_dependents(uid, call.who.username);
  if (options.propagation == Propagation::foreground) env.collector.remove_dependents(uid);
  const auto stored = env.store.commit(
      {std::move(changes), call.who.username, "delete " + store::to_string(record.key)});
  warn();
  if (!marked) return outcome;
  return {false, call.resource().object_of(*stored.front())};
}

Outcome delete_one(Env& env, Call& call, const DeleteOptions& options) {
  for (int attempt = 1;; ++attempt) {
    const auto record = find_record(env, call);
    try {
      return try_delete(env, call, options, *record);
    } catch (const Error& e) {
      // Another write came between, and it is not the client's own precondition that failed.
      const auto now = env.store.find(call.key());
      const bool raced = e.code() == Code::conflict && (!now || now->revision != record->revision);
      if (e.code() == Code::not_found) throw not_found(call.resource(), call.target.name);
      if (!raced || attempt == kMostTries) throw;
    }
  }
}

}  // namespace

http::Response delete_object(Env& env, Call& call) {
  const Outcome outcome = delete_one(env, call, read_options(call));
  const bool as_view = call.resource().is_view() && !outcome.gone;
  const json::Value document = as_view && outcome.document.get_string("kind") == "Workspace"
                                   ? namespace_of_workspace(outcome.document)
                                   : outcome.document;
  return answer(call, 200, document.dump());
}

http::Response delete_collection(Env& env, Call& call) {
  const DeleteOptions options = read_options(call);
  const Selection selection = selection_of(call);
  json::Value items = json::Value::array();
  const store::Page page = env.store.list({call.resource().stored_as, call.target.ns, 0, ""});
  for (const auto& record : page.items) {
    json::Value object = call.resource().object_of(*record);
    if (!selection.matches(object)) continue;
    call.target.name = record->key.name;
    try {
      const Outcome outcome = delete_one(env, call, options);
      items.push_back(outcome.gone ? std::move(object) : outcome.document);
    } catch (const Error& e) {
      if (e.code() != Code::not_found) throw;  // gone meanwhile is what was asked for
    }
  }
  call.target.name.clear();
  return answer(call, 200,
                json::Value::object(
                    {{"kind", call.resource().kind->kind + "List"},
                     {"apiVersion", call.resource().group_version()},
                     {"metadata", json::Value::object(
                                      {{"resourceVersion", std::to_string(env.store.revision())}})},
                     {"items", std::move(items)}})
                    .dump());
}

}  // namespace umpteenth::server
