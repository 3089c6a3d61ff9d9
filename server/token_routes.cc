#include "server/token_routes.h"

#include "base/error.h"
#include "server/negotiate.h"
#include "server/resource.h"

namespace umpteenth::server {
namespace {

constexpr std::string_view kPath = "/umpteenth/v1alpha1/tokens";

TokenInfo info_from(const json::Value& body, const Identity& who) {
  if (!body.is_object())
    throw Error(Code::bad_request,
                std::string("the body must be an object, found ") + body.type_name());
  TokenInfo info;
  for (const json::Member& m : body.members()) {
    if (m.key == "name")
      info.name = m.value.as_string();
    else if (m.key == "role")
      info.role = role_from(m.value.as_string());
    else if (m.key == "expires")
      info.expires = m.value.as_string();
    else if (m.key == "workspaces")
      for (const json::Value& workspace : m.value.items())
        info.workspaces.push_back(workspace.as_string());
    else
      throw Error(Code::bad_request, "unknown field " + json::quote(m.key) +
                                         ": a token has name, role, workspaces and expires");
  }
  if (!body.find("role")) throw invalid_field("role", "Required value", "FieldValueRequired");
  info.creator = who.username;
  return info;
}

http::Response list(const Tokens& tokens) {
  json::Value items = json::Value::array();
  for (const TokenInfo& info : tokens.list()) items.push_back(to_json(info));
  return http::Response::json(200, json::Value::object({{"items", std::move(items)}}).dump());
}

http::Response create(const http::Request& request, const Identity& who, Tokens& tokens) {
  const NewToken made = tokens.create(info_from(read_body(request, false), who));
  json::Value document = to_json(made.info);
  document.set("token", made.token);
  http::Response response = http::Response::json(201, document.dump());
  response.headers.set("Cache-Control", "no-store");
  return response;
}

}  // namespace

std::optional<http::Response> answer_tokens(const http::Request& request, const Identity& who,
                                            Tokens& tokens) {
  const std::string_view path = request.path;
  if (path != kPath && !path.starts_with(std::string(kPath) + "/")) return std::nullopt;
  if (!who.instance_admin || who.api_token)
    throw Error(Code::forbidden, "tokens are managed with the admin token only: User " +
                                     json::quote(who.username) + " cannot do that");
  if (path == kPath && request.method == "GET") return list(tokens);
  if (path == kPath && request.method == "POST") return create(request, who, tokens);
  if (path == kPath || request.method != "DELETE") throw method_not_allowed();
  const std::string_view id = path.substr(kPath.size() + 1);
  if (!tokens.revoke(id)) throw Error(Code::not_found, "token " + json::quote(id) + " not found");
  return http::Response::json(200, R"({"kind":"Status","apiVersion":"v1","status":"Success"})");
}

}  // namespace umpteenth::server
