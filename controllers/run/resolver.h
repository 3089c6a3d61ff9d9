// From names in a job to what they mean now: models with their keys, secrets' values, workspaces.
// Values are read when they are needed and kept nowhere.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apis/job.h"
#include "apis/seal.h"
#include "apis/workspace.h"
#include "base/outbound.h"
#include "controllers/run/sandbox_spec.h"
#include "models/model_client.h"
#include "runs/live_run.h"
#include "store/store.h"

namespace umpteenth::controllers::run {

class Resolver {
 public:
  Resolver(store::Store& store, const apis::Sealer& sealer, OutboundPolicy outbound)
      : store_(store), sealer_(sealer), outbound_(std::move(outbound)) {}

  // Providers of the workspace first, then of umpteenth-system. Error(invalid) names what is
  // missing.
  models::Model model(const std::string& ns, const apis::ModelRef& ref,
                      const std::string& name) const;
  // `agent` or `utility` (the agent's where none is named) of a live run; for the broker.
  models::Model model_of(const runs::LiveRun& run, const std::string& which) const;

  struct Secrets {
    std::vector<EnvVar> env;
    std::vector<std::string> notes;  // mappings without a value: the variable stays unset
  };
  Secrets secrets(const std::string& ns, const apis::JobSpec& spec) const;

  std::optional<apis::WorkspaceSpec> workspace(const std::string& ns) const;

 private:
  std::string api_key(const std::string& ns, const apis::SecretRef& ref) const;

  store::Store& store_;
  const apis::Sealer& sealer_;
  OutboundPolicy outbound_;
};

}  // namespace umpteenth::controllers::run
