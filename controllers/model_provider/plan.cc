#include "controllers/model_provider/plan.h"

#include "apis/model_provider.h"
#include "apis/object.h"
#include "controllers/job/references.h"

namespace umpteenth::controllers::model_provider {
namespace {

apis::Condition not_ready(const char* reason, std::string message) {
  return {"Ready", "False", reason, std::move(message), 0};
}

apis::Condition secret_missing(const apis::SecretRef& ref) {
  std::string wanted = ref.key.empty() ? "" : ", and its key " + ref.key + " is wanted";
  return not_ready("SecretNotFound",
                   "spec.apiKey: secret " + ref.secret + " does not exist" + wanted);
}

apis::Condition ready(const apis::ModelProviderSpec& spec, const Observed& observed) {
  bool keyed = !spec.api_key.secret.empty();
  if (keyed && !observed.secret_keys) return secret_missing(spec.api_key);
  if (keyed) {
    std::string problem = job::secret_problem(spec.api_key, &*observed.secret_keys);
    if (!problem.empty()) return not_ready("SecretKeyNotFound", "spec.apiKey: " + problem);
  }
  if (spec.models.empty()) {
    return not_ready("NoModels", "spec.models: no model is declared, so that no job can name one");
  }
  if (!observed.client_problem.empty()) {
    return not_ready(spec.type == "Scripted" ? "ScriptInvalid" : "Unusable",
                     observed.client_problem);
  }
  return {"Ready", "True", "Configured", "", 0};
}

}  // namespace

json::Value plan_status(const json::Value& object, const Observed& observed, Time now) {
  auto spec = apis::model_provider_spec_from(object.get("spec"));
  int64_t generation = apis::generation_of(object);
  json::Value status = json::Value::object({{"observedGeneration", generation}});
  const json::Value& old_conditions = object.at_path({"status", "conditions"});
  if (!old_conditions.is_null()) status.set("conditions", old_conditions);
  apis::Condition condition = ready(spec, observed);
  condition.observed_generation = generation;
  apis::set_condition(status, condition, now);
  return status;
}

}  // namespace umpteenth::controllers::model_provider
