// The server's ports, carried out by the controllers.
#pragma once

#include "base/error.h"
#include "controllers/job/controller.h"
#include "controllers/job/trigger.h"
#include "controllers/run/controller.h"
#include "server/ports.h"

namespace umpteenth::umpd {

class TriggerPort : public server::Trigger {
 public:
  explicit TriggerPort(controllers::job::TriggerService& service) : service_(service) {}

  json::Value start(const Request& r) override {
    controllers::job::StartRequest request;
    request.ns = r.ns;
    request.job = r.job;
    request.trigger = r.trigger;
    request.actor = r.actor;
    request.input = r.input;
    request.instructions = r.instructions;
    request.name = r.name;
    request.labels = r.labels;
    request.annotations = r.annotations;
    request.dry_run = r.dry_run;
    return service_.start(request);
  }

 private:
  controllers::job::TriggerService& service_;
};

class PlanPort : public server::PlanPreview {
 public:
  PlanPort(const controllers::job::JobController& jobs,
           const controllers::run::RunController& runs)
      : jobs_(jobs), runs_(runs) {}

  json::Value preview(const std::string& kind, const std::string& ns,
                      const std::string& name) override {
    const store::Key key{kind, ns, name};
    if (kind == "jobs") return jobs_.preview(key);
    if (kind == "runs") return runs_.preview(key);
    throw Error(Code::not_found, "no controller plans " + kind);
  }

 private:
  const controllers::job::JobController& jobs_;
  const controllers::run::RunController& runs_;
};

}  // namespace umpteenth::umpd
