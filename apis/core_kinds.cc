// The kinds of core/v1 that umpd serves as views: Namespace (of Workspace) and Event.
#include "apis/cells.h"
#include "apis/object.h"
#include "apis/schema_builder.h"
#include "apis/serve.h"

namespace umpteenth::apis {
namespace {

using namespace schema;  // NOLINT(google-build-using-namespace): the schema reads as one text

Node event_fields() {
  return object(
      "", {{"involvedObject", object("What it is about.",
                                     {{"kind", text("Kind.").max_length(253)},
                                      {"namespace", text("Workspace.").max_length(253)},
                                      {"name", text("Name.").max_length(253)},
                                      {"uid", text("uid.").max_length(64)},
                                      {"apiVersion", text("Group and version.").max_length(253)},
                                      {"resourceVersion", text("resourceVersion.").max_length(64)},
                                      {"fieldPath", text("Part of it.").max_length(253)}})
                                  .required()},
           {"reason", text("Why, in one CamelCase word.").max_length(128)},
           {"message", text("What happened, at most 1024 characters.").max_length(1024)},
           {"source", object("Who says so.", {{"component", text("Component.").max_length(253)},
                                              {"host", text("Host.").max_length(253)}})},
           {"firstTimestamp", schema::time("First time.").nullable()},
           {"lastTimestamp", schema::time("Last time.").nullable()},
           {"count", integer("How often.").range(0, 2147483647)},
           {"type", text("Normal or Warning.").one_of({"Normal", "Warning"}).by_default("Normal")},
           {"eventTime", schema::time("Unused.").nullable()},
           {"series", object("Unused.", {}).nullable().open()},
           {"action", text("Action.").max_length(128)},
           {"related", object("Another object.", {}).nullable().open()},
           {"reportingComponent", text("Component.").max_length(253)},
           {"reportingInstance", text("Instance.").max_length(253)}});
}

json::Value last_seen(const json::Value& event, Time now) {
  for (const char* field : {"lastTimestamp", "firstTimestamp", "eventTime"}) {
    const std::string at = event.get_string(field);
    if (!at.empty()) return format_age(now - parse_time(at));
  }
  return "<unknown>";
}

json::Value involved(const json::Value& event, Time) {
  const json::Value& object = event.get("involvedObject");
  std::string kind = object.get_string("kind");
  for (char& c : kind)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return kind + "/" + object.get_string("name");
}

}  // namespace

const Kind& namespace_kind() {
  static const Kind kind = [] {
    Kind k;
    k.kind = "Namespace";
    k.plural = "namespaces";
    k.singular = "namespace";
    k.short_names = {"ns"};
    k.group = "";
    k.version = "v1";
    k.scope = Scope::cluster;
    k.max_name = 63;
    k.description = "A Workspace, as Kubernetes' tools know it.";
    k.spec_schema = object("What must be done before it is gone.",
                           {{"finalizers", list("Finalizers.", text("Finalizer."))}})
                        .take();
    k.status_schema = object("Where it is.", {{"phase", text("Active or Terminating.")}}).take();
    k.columns = {{"Status", "string", "Active or Terminating.", 0, [](const json::Value& o, Time) {
                    return json::Value(o.get("status").get_string("phase", "Active"));
                  }}};
    k.verbs = {"create", "delete", "get", "list", "watch"};
    return k;
  }();
  return kind;
}

const Kind& event_kind() {
  static const Kind kind = [] {
    Kind k;
    k.kind = "Event";
    k.plural = "events";
    k.singular = "event";
    k.short_names = {"ev"};
    k.group = "";
    k.version = "v1";
    k.storage = Storage::database;
    k.description = "Something that happened to an object.";
    k.other_schema = event_fields().take();
    k.columns = {{"Last Seen", "string", "Time since it was seen last.", 0, last_seen},
                 at("Type", "string", "Normal or Warning.", {"type"}),
                 at("Reason", "string", "Why.", {"reason"}),
                 {"Object", "string", "What it is about.", 0, involved},
                 at("Message", "string", "What happened.", {"message"}),
                 at("Source", "string", "Who says so.", {"source", "component"}, kWide),
                 at("Count", "integer", "How often.", {"count"}, kWide)};
    k.field_selectors = {"involvedObject.kind",
                         "involvedObject.namespace",
                         "involvedObject.name",
                         "involvedObject.uid",
                         "involvedObject.apiVersion",
                         "type",
                         "reason"};
    k.verbs = {"create", "get", "list", "watch"};
    return k;
  }();
  return kind;
}

}  // namespace umpteenth::apis
