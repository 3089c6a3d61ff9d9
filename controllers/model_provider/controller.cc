#include "controllers/model_provider/controller.h"

#include "apis/model_provider.h"
#include "controllers/model_provider/plan.h"
#include "controllers/runtime/secret_keys.h"
#include "controllers/runtime/write.h"
#include "models/providers.h"

namespace umpteenth::controllers::model_provider {
namespace {

constexpr char kActor[] = "system:controller:modelprovider";

}  // namespace

Controller ModelProviderController::controller() {
  Controller c;
  c.name = "modelprovider";
  auto providers_beside = [this](const store::Event& event) {
    std::vector<store::Key> keys;
    store::Query query{
        .kind = "modelproviders", .ns = event.record->key.ns, .limit = 0, .next = ""};
    for (const auto& record : store_.list(query).items) keys.push_back(record->key);
    return keys;
  };
  c.sources = {{"modelproviders", own_key}, {"secrets", providers_beside}};
  c.reconcile = [this](const store::Key& key, const std::stop_token&) { return reconcile(key); };
  return c;
}

Outcome ModelProviderController::reconcile(const store::Key& key) {
  auto record = store_.find(key);
  if (!record) return Outcome::done();
  json::Value object = record->parse();
  Observed observed;
  auto spec = apis::model_provider_spec_from(object.get("spec"));
  const std::string& secret = spec.api_key.secret;
  if (!secret.empty()) observed.secret_keys = find_secret_keys(store_, key.ns, secret);
  observed.client_problem = models::client_problem(spec, key.name);
  write_status(store_, *record, plan_status(object, observed, clock_.now()), kActor);
  return Outcome::done();
}

}  // namespace umpteenth::controllers::model_provider
