#include "controllers/job/references.h"

namespace umpteenth::controllers::job {
namespace {

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

std::string secret_problem(const apis::SecretRef& ref, const std::set<std::string>* keys) {
  if (keys == nullptr) return "secret " + ref.secret + " does not exist";
  if (!ref.key.empty()) {
    if (keys->contains(ref.key)) return "";
    return "secret " + ref.secret + " has no key " + ref.key + " (its keys: " + joined(*keys) + ")";
  }
  if (keys->contains("value") || keys->size() == 1) return "";
  return "secret " + ref.secret + " needs a key in the reference (its keys: " + joined(*keys) + ")";
}

apis::Condition secrets_resolved(const apis::JobSpec& spec, const Observed& observed) {
  std::string problems;
  for (const auto& mapping : spec.secrets) {
    auto known = observed.secrets.find(mapping.ref.secret);
    std::string problem =
        secret_problem(mapping.ref, known == observed.secrets.end() ? nullptr : &known->second);
    if (!problem.empty()) problems += (problems.empty() ? "" : "; ") + problem;
  }
  if (!problems.empty()) return {"SecretsResolved", "False", "SecretMissing", problems, 0};
  return {"SecretsResolved", "True", "Resolved", "", 0};
}

apis::Condition model_resolved(const apis::JobSpec& resolved, const Observed& observed) {
  auto missing = [](const char* reason, std::string message) {
    return apis::Condition{"ModelResolved", "False", reason, std::move(message), 0};
  };
  const apis::ModelRef& model = resolved.model;
  if (model.provider.empty() || model.name.empty()) {
    return missing(
        "NoModel",
        "No model is configured. Set spec.model of the job or spec.defaults.model of its "
        "Workspace.");
  }
  auto provider = observed.providers.find(model.provider);
  if (provider == observed.providers.end()) {
    return missing("ProviderMissing", "model provider " + model.provider + " does not exist");
  }
  for (const std::string& name : {model.name, model.utility}) {
    if (name.empty() || provider->second.contains(name)) continue;
    return missing("ModelMissing", "model provider " + model.provider + " has no model " + name +
                                       " (its models: " + joined(provider->second) + ")");
  }
  auto problem = observed.provider_problems.find(model.provider);
  if (problem != observed.provider_problems.end()) {
    return missing("ProviderNotReady", "model provider " + model.provider + ": " + problem->second);
  }
  return {"ModelResolved", "True", "Resolved", model.provider + "/" + model.name, 0};
}

}  // namespace umpteenth::controllers::job
