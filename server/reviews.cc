#include "server/reviews.h"

#include <functional>

#include "base/error.h"
#include "server/negotiate.h"
#include "server/resource.h"

namespace umpteenth::server {
namespace {

using json::Value;

constexpr char kAuthorization[] = "/apis/authorization.k8s.io/v1/";
constexpr char kAuthentication[] = "/apis/authentication.k8s.io/v1/";

Value access_status(const Value& spec, const Identity& who) {
  const Value& path = spec.get("nonResourceAttributes");
  if (path.is_object()) {
    const bool read = path.get_string("verb") == "get";
    return Value::object({{"allowed", read || who.instance_admin}});
  }
  const Value& asked = spec.get("resourceAttributes");
  if (!asked.is_object())
    throw invalid_field("spec.resourceAttributes", "Required value", "FieldValueRequired");
  const Attributes what{asked.get_string("verb"),      asked.get_string("group"),
                        asked.get_string("resource"),  asked.get_string("subresource"),
                        asked.get_string("namespace"), asked.get_string("name")};
  const bool yes = allowed(who, what);
  Value status = Value::object({{"allowed", yes}});
  if (!yes) status.set("reason", refusal(who, what));
  return status;
}

Value user_info(const Identity& who) {
  Value workspaces = Value::array();
  for (const auto& [workspace, role] : who.workspaces) workspaces.push_back(workspace);
  Value groups = Value::array({"system:authenticated"});
  if (who.instance_admin) groups.push_back("system:masters");
  Value info = Value::object({{"username", who.username}, {"uid", who.uid}, {"groups", groups}});
  if (!workspaces.empty())
    info.set("extra", Value::object({{"workspace", std::move(workspaces)},
                                     {"role", Value::array({to_string(who.best_role())})}}));
  return info;
}

http::Response review(const http::Request& request, const char* group_version, const char* kind,
                      const std::function<Value(const Value& spec)>& status) {
  if (request.method != "POST") throw method_not_allowed();
  Value body = request.body.empty() ? Value::object() : read_body(request, true);
  if (!body.is_object())
    throw Error(Code::bad_request,
                std::string("the body must be a ") + kind + ", found " + body.type_name());
  body.set("kind", kind);
  body.set("apiVersion", group_version);
  if (!body.get("metadata").is_object()) body.set("metadata", Value::object());
  body.set("status", status(body.get("spec")));
  return http::Response::json(201, body.dump());
}

}  // namespace

std::optional<http::Response> answer_review(const http::Request& request, const Identity& who) {
  const std::string_view path = request.path;
  if (path == std::string(kAuthorization) + "selfsubjectaccessreviews")
    return review(request, "authorization.k8s.io/v1", "SelfSubjectAccessReview",
                  [&](const Value& spec) { return access_status(spec, who); });
  if (path == std::string(kAuthorization) + "selfsubjectrulesreviews")
    return review(
        request, "authorization.k8s.io/v1", "SelfSubjectRulesReview",
        [&](const Value& spec) { return rules_review(who, spec.get_string("namespace")); });
  if (path == std::string(kAuthentication) + "selfsubjectreviews")
    return review(request, "authentication.k8s.io/v1", "SelfSubjectReview", [&](const Value&) {
      return Value::object({{"userInfo", user_info(who)}});
    });
  return std::nullopt;
}

}  // namespace umpteenth::server
