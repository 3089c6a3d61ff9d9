// Executes one claimed run, on a thread of its own: resolve, image, sandbox, agent, collect,
// remove, one final status. It is the only one that touches the run's sandbox.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "apis/run.h"
#include "controllers/run/collect.h"
#include "controllers/run/sandbox.h"
#include "controllers/run/sandbox_exec.h"
#include "controllers/run/services.h"
#include "runs/live_run.h"

namespace umpteenth::controllers::run {

enum class Stop { none, cancelled, removed, timeout, shutdown, gone };

class Driver : public std::enable_shared_from_this<Driver> {
 public:
  // claimed: the Run in phase Provisioning. Owned by a shared_ptr: alarms may outlive it.
  Driver(Services& services, const store::Record& claimed);

  const store::Key& key() const { return key_; }
  const std::string& uid() const { return uid_; }

  void execute();        // blocks until the run has ended and its sandbox is removed
  void stop(Stop why);   // from any thread; the first reason stays
  Stop stopped() const;  // none while it goes on
  int64_t spent() const { return live_->budget().spent(); }

 private:
  struct Ending {
    apis::Phase phase = apis::Phase::failed;
    std::string reason, message;
  };

  Ending attempt();
  void check_may_run();
  std::shared_ptr<EngineHandle> find_engine();
  void check_disk_limit();
  PreparedImage prepare_image();
  bool meets_in_namespace(const std::string& runtime);
  void provision(const PreparedImage& image);
  std::string open_egress();
  void guard_egress();
  Ending run_agent(const models::Model& model, std::vector<EnvVar> secrets);
  Ending ending_of(const agent::Result& result) const;
  Ending ending_of_stop() const;
  Ending ending_of_error(const Error& error) const;

  void collect(Ending& ending);
  bool sandbox_is_lost();
  void remove_sandbox();
  void finish(const Ending& ending);

  // Calls f until the engine answers. Error(unavailable) once the run was stopped or, after the
  // run's end, once patience ran out.
  template <typename F>
  auto patiently(const F& f);
  template <typename F>
  void until(Time give_up, const char* what, const F& f);

  void note(std::string_view type, json::Value data);
  void note_waiting(const std::string& cause);
  void note_error(const std::string& message);
  int64_t since(Time t) const { return (services_.clock.now() - t).count(); }

  Services& services_;
  store::Key key_;
  std::string uid_;
  json::Value object_;
  apis::RunSpec run_;
  apis::JobSpec job_;
  Time began_;
  std::shared_ptr<runs::LiveRun> live_;
  std::atomic<Stop> stop_{Stop::none};

  std::shared_ptr<EngineHandle> handle_;
  std::optional<SandboxParams> params_;
  std::optional<Sandbox> sandbox_;
  apis::RunStatus result_;  // what the run's end adds to the status
};

}  // namespace umpteenth::controllers::run
