#include "server/admission.h"

#include <algorithm>
#include <cctype>

#include "apis/object.h"

namespace umpteenth::server {
namespace {

constexpr size_t kMaxManager = 128;

std::string manager_of(const http::Request& request) {
  const std::string_view given = request.param("fieldManager");
  if (given.size() > kMaxManager)
    throw invalid_field("fieldManager",
                        "Too long: may not be more than " + std::to_string(kMaxManager) + " bytes",
                        "FieldValueTooLong");
  if (std::any_of(given.begin(), given.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }))
    throw invalid_field("fieldManager",
                        "Invalid value: " + json::quote(given) + ": should be printable",
                        "FieldValueInvalid");
  if (!given.empty()) return std::string(given);
  const std::string_view agent = request.headers.get("User-Agent");
  const std::string name(agent.substr(0, std::min(agent.find('/'), kMaxManager)));
  return name.empty() ? "unknown" : name;
}

apis::FieldValidation validation_of(const http::Request& request) {
  const std::string_view text = request.param("fieldValidation");
  if (text.empty() || text == "Warn") return apis::FieldValidation::warn;
  if (text == "Strict") return apis::FieldValidation::strict;
  if (text == "Ignore") return apis::FieldValidation::ignore;
  throw invalid_field("fieldValidation",
                      "Unsupported value: " + json::quote(text) +
                          ": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
                      "FieldValueNotSupported");
}

bool is_secret(const Call& call) { return call.resource().stored_as == "secrets"; }

void replace_all(std::string& text, const std::string& from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

bool read_dry_run(const std::vector<std::string>& values) {
  for (const std::string& value : values)
    if (value != "All")
      throw invalid_field(
          "dryRun", "Unsupported value: " + json::quote(value) + ": supported values: \"All\"",
          "FieldValueNotSupported");
  return !values.empty();
}

WriteQuery read_write_query(const Call& call) {
  const http::Request& request = call.http;
  WriteQuery query;
  std::vector<std::string> dry;
  for (const auto& [key, value] : request.query)
    if (key == "dryRun" && !value.empty()) dry.push_back(value);
  query.dry_run = read_dry_run(dry);
  const bool apply = body_type(request) == BodyType::apply_patch;
  if (request.has_param("force") && request.method == "PATCH" && !apply)
    throw invalid_field("force", "Forbidden: may not be specified for non-apply patch",
                        "FieldValueForbidden");
  if (apply && request.param("fieldManager").empty())
    throw invalid_field("fieldManager", "Required value: is required for apply patch",
                        "FieldValueRequired");
  query.force = flag(request, "force");
  query.options.field_manager = manager_of(request);
  query.options.field_validation = validation_of(request);
  query.options.now = call.now;
  return query;
}

void fit_to_path(const Call& call, json::Value& object) {
  const Resource& r = call.resource();
  if (!object.is_object())
    throw Error(Code::bad_request, std::string("the body must be an object of kind ") +
                                       r.kind->kind + ", found " + object.type_name());
  if (r.group.empty()) {  // typed clients leave these out for built-in kinds
    if (!object.find("kind")) object.set("kind", r.kind->kind);
    if (!object.find("apiVersion")) object.set("apiVersion", r.group_version());
  }
  for (const char* field : {"kind", "apiVersion"})
    if (object.get_string(field).empty())
      throw Error(Code::bad_request, std::string("Object '") +
                                         (field[0] == 'k' ? "Kind" : "apiVersion") +
                                         "' is missing in the body");
  if (object.get_string("apiVersion") != r.group_version())
    throw Error(Code::bad_request,
                "the API version in the data (" + object.get_string("apiVersion") +
                    ") does not match the expected API version (" + r.group_version() + ")");
  if (object.get_string("kind") != r.kind->kind)
    throw Error(Code::bad_request, object.get_string("kind") + " in version " +
                                       json::quote(r.version) + " cannot be handled as a " +
                                       r.kind->kind);
  if (!object["metadata"].is_object() && !object["metadata"].is_null())
    throw Error(Code::bad_request,
                std::string("metadata must be an object, found ") + object["metadata"].type_name());
  json::Value& meta = object["metadata"];
  const std::string ns = meta.get_string("namespace");
  if (!ns.empty() && ns != call.target.ns)
    throw Error(Code::bad_request,
                "the namespace of the provided object does not match the namespace sent on the "
                "request");
  if (!call.target.ns.empty()) meta.set("namespace", call.target.ns);
  const std::string name = meta.get_string("name");
  if (!call.target.name.empty() && name.empty()) meta.set("name", call.target.name);
  if (!call.target.name.empty() && !name.empty() && name != call.target.name)
    throw Error(Code::bad_request, "the name of the object (" + name +
                                       ") does not match the name on the URL (" + call.target.name +
                                       ")");
}

void require_workspace(Env& env, const Call& call) {
  if (!call.resource().kind->namespaced()) return;
  const std::string& ns = call.target.ns;
  const auto workspace = env.store.find({"workspaces", "", ns});
  if (!workspace) throw Error(Code::not_found, "namespaces " + json::quote(ns) + " not found");
  if (apis::deleting(workspace->parse()))
    throw Error(Code::forbidden, call.resource().qualified() +
                                     " is forbidden: unable to create new content in namespace " +
                                     ns + " because it is being terminated");
}

Error without_values(const Error& error, const json::Value& given) {
  std::string message = error.message();
  std::vector<Cause> causes = error.causes();
  const json::Value& values = given.at_path({"spec", "stringData"});
  if (!values.is_object()) return error;
  for (const json::Member& m : values.members()) {
    if (!m.value.is_string() || m.value.as_string().empty()) continue;
    std::string quoted = json::quote(m.value.as_string());
    quoted = quoted.substr(1, quoted.size() - 2);
    for (const std::string& text : {m.value.as_string(), quoted}) {
      // Short ones only where they stand alone, or every letter a would go.
      const std::string form = text.size() < 6 ? "\"" + text + "\"" : text;
      replace_all(message, form, "***");
      for (Cause& cause : causes) replace_all(cause.message, form, "***");
    }
  }
  return Error(error.code(), std::move(message), std::move(causes));
}

void seal_values(Env& env, const Call& call, json::Value& object, const json::Value* old) {
  if (!is_secret(call)) return;
  const json::Value given = object;
  try {
    apis::admit_secret(env.sealer, object, old);
  } catch (const Error& e) {  // an error text is an answer and a log line
    throw without_values(e, given);
  }
}

void forget_sealed_values(const json::Value& patch, json::Value& object) {
  const json::Value* spec = patch.find("spec");
  const json::Value* removed = spec ? spec->find("stringData") : nullptr;
  json::Value* sealed = object["spec"].find("sealedData");
  if (!removed || !sealed || !sealed->is_object()) return;
  if (removed->is_null()) *sealed = json::Value::object();
  if (!removed->is_object()) return;
  for (const json::Member& m : removed->members())
    if (m.value.is_null()) sealed->erase(m.key);
}

}  // namespace umpteenth::server
