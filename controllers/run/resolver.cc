#include "controllers/run/resolver.h"

#include "apis/model_provider.h"
#include "base/error.h"
#include "models/providers.h"

namespace umpteenth::controllers::run {
namespace {
constexpr char kNoModel[] =
    "No model is configured. Set spec.model of the job or spec.defaults.model of its Workspace.";
}  // namespace

std::string Resolver::api_key(const std::string& ns, const apis::SecretRef& ref) const {
  if (ref.secret.empty()) return "";
  auto record = store_.find({"secrets", ns, ref.secret});
  if (!record) throw Error(Code::invalid, "secret " + ref.secret + " does not exist");
  return apis::secret_value(sealer_, record->parse(), ref.key);
}

models::Model Resolver::model(const std::string& ns, const apis::ModelRef& ref,
                              const std::string& name) const {
  if (ref.provider.empty() || name.empty()) throw Error(Code::invalid, kNoModel);
  for (const std::string& where : {ns, std::string(apis::kSystemWorkspace)}) {
    auto record = store_.find({"modelproviders", where, ref.provider});
    if (!record) continue;
    auto provider = apis::model_provider_spec_from(record->parse().get("spec"));
    try {
      return models::make_model(provider, ref.provider, name, api_key(where, provider.api_key),
                                outbound_);
    } catch (Error& e) {
      throw e.in("model provider " + ref.provider);
    }
  }
  throw Error(Code::invalid, "model provider " + ref.provider + " does not exist");
}

models::Model Resolver::model_of(const runs::LiveRun& run, const std::string& which) const {
  apis::ModelRef ref = apis::job_spec_from(run.info().job_spec).model;
  bool utility = which == "utility" && !ref.utility.empty();
  return model(run.info().ns, ref, utility ? ref.utility : ref.name);
}

Resolver::Secrets Resolver::secrets(const std::string& ns, const apis::JobSpec& spec) const {
  Secrets result;
  for (const auto& mapping : spec.secrets) {
    std::string unset = ": the variable " + mapping.env + " is unset";
    if (reserved_env(mapping.env)) {
      result.notes.push_back("secret " + mapping.ref.secret + " is mapped to a reserved name" +
                             unset);
      continue;
    }
    auto record = store_.find({"secrets", ns, mapping.ref.secret});
    if (!record) {
      result.notes.push_back("secret " + mapping.ref.secret + " does not exist" + unset);
      continue;
    }
    try {
      std::string value = apis::secret_value(sealer_, record->parse(), mapping.ref.key);
      result.env.push_back({mapping.env, std::move(value)});
    } catch (const Error& e) {  // a missing value is a note on the timeline, not the run's end
      result.notes.push_back("secret " + mapping.ref.secret + ": " + e.message() + unset);
    }
  }
  return result;
}

std::optional<apis::WorkspaceSpec> Resolver::workspace(const std::string& ns) const {
  auto record = store_.find({"workspaces", "", ns});
  if (!record) return std::nullopt;
  return apis::workspace_spec_from(record->parse().get("spec"));
}

}  // namespace umpteenth::controllers::run
