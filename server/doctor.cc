#include "server/doctor.h"

#include "base/error.h"
#include "server/resource.h"

namespace umpteenth::server {
namespace {

constexpr char kAdminToken[] = "admin";  // the id of the one that umpd makes itself

std::vector<json::Value> all_of(const store::Store& store, const std::string& kind) {
  std::vector<json::Value> objects;
  for (const store::RecordPtr& record : store.list({kind, "", 0, ""}).items)
    objects.push_back(record->parse());
  return objects;
}

}  // namespace

std::optional<http::Response> answer_doctor(const http::Request& request, const Identity& who,
                                            const ServerDeps& deps) {
  if (request.path != "/umpteenth/v1alpha1/doctor") return std::nullopt;
  if (request.method != "GET") throw method_not_allowed();
  if (!who.instance_admin)
    throw Error(Code::forbidden, "the checklist is for the instance's admin only: User " +
                                     json::quote(who.username) + " cannot see it");
  if (!deps.hardening_facts)
    throw Error(Code::unavailable, "the checklist is not ready: umpd's own options are not known");
  HardeningSubject subject{deps.hardening_facts(), {}, {}, {}, {}};
  for (const TokenInfo& token : deps.tokens.list())
    if (token.id != kAdminToken) subject.tokens.push_back(token.name);
  subject.engines = all_of(deps.store, "sandboxengines");
  subject.jobs = all_of(deps.store, "jobs");
  subject.models = all_of(deps.store, "modelproviders");
  return http::Response::json(200, to_json(check_hardening(subject)).dump());
}

}  // namespace umpteenth::server
