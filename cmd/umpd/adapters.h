// The server's ports, carried out by the controllers.
#pragma once

#include "controllers/controllers.h"
#include "server/ports.h"

namespace umpteenth::umpd {

class TriggerPort : public server::Trigger {
 public:
  explicit TriggerPort(controllers::Controllers& controllers) : controllers_(controllers) {}

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
    return controllers_.start_run(request);
  }

 private:
  controllers::Controllers& controllers_;
};

class PlanPort : public server::PlanPreview {
 public:
  explicit PlanPort(controllers::Controllers& controllers) : controllers_(controllers) {}

  json::Value preview(const std::string& kind, const std::string& ns,
                      const std::string& name) override {
    return controllers_.preview(kind, ns, name);
  }

 private:
  controllers::Controllers& controllers_;
};

}  // namespace umpteenth::umpd
