#include "apis/job_rules.h"

#include <algorithm>

#include "apis/cron.h"
#include "apis/formats.h"
#include "apis/schema.h"
#include "base/log.h"

namespace umpteenth::apis {
namespace {

void check_schedule(const json::Value& schedule, std::vector<Cause>& causes) {
  if (!schedule.is_object() || !schedule.get("cron").is_string()) return;
  const std::string& cron = schedule.get("cron").as_string();
  try {
    Cron parsed(cron);
  } catch (const Error& e) {  // becomes a cause of this field
    causes.push_back({"spec.schedule.cron",
                      "Invalid value: " + json::quote(cron.substr(0, 256)) + ": " + e.message(),
                      "FieldValueInvalid"});
  }
}

void check_secrets(const json::Value& secrets, std::vector<Cause>& causes) {
  if (!secrets.is_array()) return;
  for (size_t i = 0; i < secrets.size(); ++i) {
    const std::string env = secrets.items()[i].get_string("env");
    if (reserved_env_name(env))
      causes.push_back({"spec.secrets[" + std::to_string(i) + "].env",
                        "Invalid value: " + json::quote(env) +
                            ": is reserved for umpteenth (UMP_* and the proxy variables)",
                        "FieldValueInvalid"});
  }
}

}  // namespace

void check_network(const json::Value& network, const std::string& path,
                   std::vector<Cause>& causes) {
  const bool by_list = network.get_string("mode") == "AllowedDomains";
  const bool any = !network.get("allowedDomains").empty();
  if (by_list && !any)
    causes.push_back({path + ".allowedDomains",
                      "Required value: mode AllowedDomains needs 1 to 100 domains",
                      "FieldValueRequired"});
  if (!by_list && any)
    causes.push_back({path + ".allowedDomains",
                      "Forbidden: only with mode AllowedDomains, and the mode is " +
                          network.get_string("mode", "Internet"),
                      "FieldValueForbidden"});
}

void check_job(const json::Value& object, const json::Value*, std::vector<Cause>& causes) {
  const json::Value& spec = object.get("spec");
  check_network(spec.get("network"), "spec.network", causes);
  check_schedule(spec.get("schedule"), causes);
  check_secrets(spec.get("secrets"), causes);
  const json::Value& branch = spec.at_path({"repository", "branch"});
  if (branch.get_string("policy") == "Named" && branch.get_string("name").empty())
    causes.push_back({"spec.repository.branch.name",
                      "Required value: policy Named needs the branch's name",
                      "FieldValueRequired"});
}

std::vector<Cause> missing_inputs(const JobSpec& spec, const json::Value& input) {
  std::vector<Cause> causes;
  for (const JobSpec::Input& declared : spec.inputs)
    if (declared.required && input.get(declared.name).is_null())
      causes.push_back({join_path("spec.input", declared.name),
                        "Required value: the job declares it as required", "FieldValueRequired"});
  return causes;
}

std::vector<Cause> undeclared_inputs(const JobSpec& spec, const json::Value& input) {
  constexpr size_t kMaxShown = 100;
  if (spec.inputs.empty() || input.is_null()) return {};
  std::string names;
  for (const JobSpec::Input& i : spec.inputs) names += (names.empty() ? "" : ", ") + i.name;
  if (!input.is_object())
    return {{"spec.input",
             std::string("Invalid value: \"") + input.type_name() +
                 "\": must be an object, for the job declares inputs: " + names,
             "FieldValueTypeInvalid"}};
  std::vector<Cause> causes;
  for (const json::Member& m : input.members()) {
    const bool declared =
        std::ranges::any_of(spec.inputs, [&](const auto& i) { return i.name == m.key; });
    if (declared) continue;
    causes.push_back({join_path("spec.input", m.key),
                      "Invalid value: " + log::clip(m.value.dump(), kMaxShown) +
                          ": the job does not declare it, its inputs are: " + names,
                      "FieldValueInvalid"});
  }
  return causes;
}

}  // namespace umpteenth::apis
