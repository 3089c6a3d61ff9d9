#include "server/call.h"

#include <algorithm>
#include <charconv>

#include "apis/yaml.h"

namespace umpteenth::server {

void authorize(const Call& call, std::string_view verb) {
  authorize(call, verb, call.target.subresource);
}

void authorize(const Call& call, std::string_view verb, std::string_view subresource) {
  const Resource& r = call.resource();
  const Attributes what{std::string(verb),        r.group,        r.kind->plural,
                        std::string(subresource), call.target.ns, call.target.name};
  if (allowed(call.who, what)) return;
  const std::string name = what.name.empty() ? "" : " " + json::quote(what.name);
  throw Error(Code::forbidden, r.qualified() + name + " is forbidden: " + refusal(call.who, what));
}

void add_warnings(http::Response& response, const std::vector<std::string>& warnings) {
  constexpr size_t kMostWarnings = 20;  // clients bound the header section
  for (size_t i = 0; i < warnings.size() && i < kMostWarnings; ++i)
    response.headers.add("Warning", "299 - " + json::quote(warnings[i]));
}

http::Response answer(const Call& call, int status, std::string json) {
  http::Response response;
  response.status = status;
  const bool yaml = negotiate(call.http.headers.get("Accept")).yaml;
  response.headers.set("Content-Type", yaml ? "application/yaml" : "application/json");
  response.headers.set("Cache-Control", "no-cache, private");
  response.body = yaml ? apis::to_yaml(json::parse(json)) : std::move(json);
  add_warnings(response, call.warnings);
  return response;
}

http::Response answer_object(const Call& call, int status, const json::Value& object) {
  const Accepted accepted = negotiate(call.http.headers.get("Accept"));
  switch (accepted.shape) {
    case Shape::object:
      return answer(call, status, object.dump());
    case Shape::table: {
      json::Value table = table_of(call, accepted, {object}, true);
      table["metadata"].set("resourceVersion", object.at_path({"metadata", "resourceVersion"}));
      return answer(call, status, table.dump());
    }
    case Shape::partial:
    case Shape::partial_list:
      break;
  }
  return answer(call, status, partial_of(object, accepted.meta_version).dump());
}

http::Response answer_record(const Call& call, int status, const store::Record& record) {
  if (negotiate(call.http.headers.get("Accept")).shape == Shape::object)
    return answer(call, status, call.resource().text_of(record));
  return answer_object(call, status, call.resource().object_of(record));
}

http::Response answer_error(const Error& error, const apis::ErrorSubject& subject) {
  http::Response response;
  response.status = http_status(error.code());
  response.headers.set("Content-Type", "application/json");
  response.headers.set("Cache-Control", "no-cache, private");
  if (error.code() == Code::unauthorized)
    response.headers.set("WWW-Authenticate", "Bearer realm=\"umpteenth\"");
  if (const auto seconds = error.retry_after_seconds())
    response.headers.set("Retry-After", std::to_string(*seconds));
  response.body = apis::status_of(error, subject).dump();
  return response;
}

apis::IncludeObject include_object(const http::Request& request) {
  const std::string_view text = request.param("includeObject");
  if (text.empty() || text == "Metadata") return apis::IncludeObject::metadata;
  if (text == "None") return apis::IncludeObject::none;
  if (text == "Object") return apis::IncludeObject::object;
  throw Error(Code::bad_request,
              "includeObject must be None, Metadata or Object, not " + json::quote(text));
}

json::Value partial_of(const json::Value& object, const std::string& meta_version) {
  json::Value partial = apis::partial_metadata(object);
  partial.set("apiVersion", "meta.k8s.io/" + meta_version);
  return partial;
}

json::Value table_of(const Call& call, const Accepted& accepted,
                     const std::vector<json::Value>& objects, bool with_columns) {
  json::Value table = apis::make_table(*call.resource().kind, objects, include_object(call.http),
                                       call.now, with_columns);
  table.set("apiVersion", "meta.k8s.io/" + accepted.meta_version);
  if (!table.get("metadata").is_object()) table.set("metadata", json::Value::object());
  return table;
}

Selection selection_of(const Call& call) {
  return {
      apis::LabelSelector(call.http.param("labelSelector")),
      apis::FieldSelector(call.http.param("fieldSelector"), call.resource().kind->field_selectors)};
}

bool flag(const http::Request& request, std::string_view name) {
  const std::string_view text = request.param(name);
  return text == "true" || text == "True" || text == "1";
}

uint64_t parse_revision(std::string_view text) {
  if (text.empty()) return 0;
  uint64_t revision = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(Code::bad_request,
                "resourceVersion: Invalid value: " + json::quote(text) + ": must be a number");
  return revision;
}

}  // namespace umpteenth::server
