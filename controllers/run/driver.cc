#include "controllers/run/driver.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "apis/object.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "controllers/run/plan.h"
#include "controllers/run/status_write.h"
#include "controllers/runtime/job_events.h"
#include "controllers/sandbox_engine/plan.h"

namespace umpteenth::controllers::run {
namespace {

constexpr Duration kEnginePoll{250};

runs::RunInfo info_of(const store::Key& key, const std::string& uid, const apis::RunSpec& run,
                      const apis::JobSpec& job, Time deadline) {
  runs::RunInfo info;
  info.ns = key.ns;
  info.name = key.name;
  info.uid = uid;
  info.job = run.job;
  info.job_spec = run.job_spec;
  info.max_cost_micro_usd = static_cast<int64_t>(job.limits.max_cost_usd * 1e6);
  info.declared_outputs = job.outputs;
  info.deadline = deadline;
  info.egress = runs::egress_grant(job);
  return info;
}

bool says_gone(const Error& e) {
  return e.code() == Code::not_found && e.message().find(kSandboxGone) != std::string::npos;
}

}  // namespace

Driver::Driver(Services& services, const store::Record& claimed)
    : services_(services), key_(claimed.key), object_(claimed.parse()) {
  uid_ = apis::uid_of(object_);
  run_ = apis::run_spec_from(object_.get("spec"));
  job_ = apis::job_spec_from(run_.job_spec);
  began_ = services_.clock.now();
  Time deadline = began_ + std::chrono::seconds(job_.limits.timeout_seconds);
  live_ = std::make_shared<runs::LiveRun>(info_of(key_, uid_, run_, job_, deadline),
                                          services_.store, services_.clock);
}

void Driver::stop(Stop why) {
  Stop none = Stop::none;
  stop_.compare_exchange_strong(none, why);
  live_->stop().request_stop();
}

Stop Driver::stopped() const { return stop_.load(); }

void Driver::execute() {
  Timer::Id alarm = services_.timer.at(live_->info().deadline, [self = weak_from_this()] {
    if (auto driver = self.lock()) driver->stop(Stop::timeout);
  });
  note("run.status", json::Value::object({{"phase", "Provisioning"}}));
  tell_job(services_.events, services_.store, {key_, run_.job, apis::Phase::provisioning, ""});
  Ending ending = attempt();
  services_.timer.cancel(alarm);
  services_.watch.remove(uid_);
  services_.registry.remove(uid_);
  if (handle_ && handle_->parts().guard) handle_->parts().guard->release(uid_);
  if (sandbox_ && sandbox_->door) sandbox_->door->close();
  collect(ending);
  remove_sandbox();
  finish(ending);
}

Driver::Ending Driver::attempt() {
  try {
    check_may_run();
    handle_ = find_engine();
    check_disk_limit();
    models::Model model = services_.resolver.model(key_.ns, job_.model, job_.model.name);
    auto secrets = services_.resolver.secrets(key_.ns, job_);
    for (const auto& text : secrets.notes) note("log", json::Value::object({{"message", text}}));
    provision(prepare_image());
    return run_agent(model, std::move(secrets.env));
  } catch (const Error& e) {
    return ending_of_error(e);
  } catch (const std::exception& e) {  // the run ends, umpd goes on
    log::error("run failed unexpectedly", {{"run", key_.name}, {"error", log::clip(e.what())}});
    return {apis::Phase::failed, "InternalError", "the run failed unexpectedly"};
  }
}

void Driver::check_may_run() {
  if (!job_.sandbox.dockerfile.empty()) {
    throw Error(Code::invalid,
                "spec.sandbox.dockerfile: this umpd builds no images; set spec.sandbox.image");
  }
  auto workspace = services_.resolver.workspace(key_.ns);
  if (!workspace) return;
  int64_t spent = services_.spend.today(key_.ns);
  for (const auto& other : services_.registry.all()) {
    if (other->info().ns == key_.ns) spent += other->budget().spent();
  }
  std::string problem = spend_problem(spent, workspace->daily_spend_usd);
  if (!problem.empty()) throw Error(Code::forbidden, problem);
}

std::shared_ptr<EngineHandle> Driver::find_engine() {
  std::string name = job_.sandbox.engine.empty() ? "default" : job_.sandbox.engine;
  if (auto handle = services_.engines.find(name)) return handle;
  auto record = services_.store.find({"sandboxengines", "", name});
  if (!record) throw Error(Code::invalid, "sandbox engine " + name + " does not exist");
  auto spec = apis::sandbox_engine_spec_from(record->parse().get("spec"));
  std::string why = sandbox_engine::unsupported(spec);
  if (!why.empty()) throw Error(Code::invalid, "sandbox engine " + name + ": " + why);
  return services_.engines.ensure(name, spec);
}

template <typename F>
auto Driver::patiently(const F& f) {
  auto stop = live_->stop().get_token();
  for (bool noted = false;;) {
    try {
      return f();
    } catch (const Error& e) {
      if (e.code() != Code::unavailable || stop.stop_requested()) throw;
      if (!std::exchange(noted, true)) note_waiting(e.message());
    }
    services_.clock.sleep_for(kEnginePoll, stop);
  }
}

// A limit that would silently not be one is none to rely on.
void Driver::check_disk_limit() {
  if (job_.sandbox.resources.disk_mib == 0) return;
  if (!patiently([&] { return handle_->engine().info(); }).disk_limit) {
    throw Error(Code::forbidden, sandbox_engine::disk_limit_refusal(handle_->name()));
  }
}

PreparedImage Driver::prepare_image() {
  std::string image = job_.sandbox.image.empty() ? handle_->spec().image : job_.sandbox.image;
  if (image.empty()) {
    throw Error(Code::invalid,
                "no sandbox image is set for the job, its workspace or its sandbox engine");
  }
  Time from = services_.clock.now();
  PreparedImage prepared;
  try {
    prepared =
        patiently([&] { return handle_->parts().prepare_image(image, live_->stop().get_token()); });
  } catch (Error& e) {
    throw e.in("Failed to create the sandbox: image " + image);
  }
  result_.image_ms = since(from);
  note("sandbox.image_wait",
       json::Value::object(
           {{"image", image}, {"digest", prepared.digest}, {"durationMs", result_.image_ms}}));
  return prepared;
}

bool Driver::meets_in_namespace(const std::string& runtime) {
  const std::string& wanted = handle_->spec().attachment;
  std::string obstacle;
  if (wanted != sandbox_engine::kNetwork)
    obstacle = patiently([&] { return handle_->parts().namespace_obstacle(runtime); });
  auto attachment = sandbox_engine::choose_attachment(wanted, obstacle);
  if (!attachment.refusal.empty())
    throw Error(Code::invalid, "sandbox engine " + handle_->name() + ": " + attachment.refusal);
  return attachment.how == sandbox_engine::kNamespace;
}

void Driver::provision(const PreparedImage& image) {
  SandboxParams params;
  params.instance = services_.instance;
  params.ns = key_.ns;
  params.run = key_.name;
  params.run_uid = uid_;
  params.job = run_.job;
  params.spec = job_;
  params.image = image.id;
  params.runtime = job_.sandbox.runtime.empty() ? handle_->spec().runtime : job_.sandbox.runtime;
  params.in_namespace = meets_in_namespace(params.runtime);
  if (job_.network.mode == apis::NetworkMode::internet)
    params.open_network = patiently([&] { return open_egress(); });
  params.expires = format_time(live_->info().deadline + kTtlBeyondTimeout);
  params_ = params;
  Time from = services_.clock.now();
  bool again = false;
  try {
    sandbox_ = patiently([&] {
      if (live_->stop().stop_requested()) throw Error(Code::unavailable, "the run was stopped");
      if (std::exchange(again, true)) {
        clear_attempt(*handle_, params);
        if (!params.open_network.empty()) params.open_network = open_egress();
      }
      try {
        return create_sandbox(*handle_, params);
      } catch (const Error& e) {
        // Two installations made a network of one name just now: one of them gives way.
        if (e.message().find("is ambiguous (") == std::string::npos) throw;
        throw Error(Code::unavailable, e.message());
      }
    });
  } catch (Error& e) {
    throw e.in("Failed to create the sandbox");
  }
  if (job_.network.mode == apis::NetworkMode::internet) guard_egress();
  result_.provision_ms = since(from);
  result_.sandbox = {sandbox_->container, sandbox_->network.name, sandbox_->endpoint(),
                     image.digest,        params.runtime,         handle_->name()};
  services_.watch.add(uid_, handle_, *sandbox_, [self = weak_from_this()] {
    if (auto driver = self.lock()) driver->stop(Stop::gone);
  });
  note("sandbox.create",
       json::Value::object({{"container", sandbox_->container.substr(0, 12)},
                            {"image", image.digest},
                            {"engine", handle_->name()},
                            {"runtime", params.runtime},
                            {"network", std::string(apis::to_string(job_.network.mode))},
                            {"durationMs", result_.provision_ms}}));
}

Driver::Ending Driver::run_agent(const models::Model& model, std::vector<EnvVar> secrets) {
  std::string token = services_.registry.add(live_, sandbox_->endpoint());
  SandboxTarget target;
  target.container = sandbox_->container;
  target.root_job = job_.sandbox.run_as_root;
  target.env = command_env(token, uid_, job_.network.mode, secrets, services_.broker_port);
  target.ending = live_->stop().get_token();
  SandboxExec io(handle_->engine(), services_.clock, std::move(target));
  json::Value input = run_.input.is_null() ? json::Value::object() : run_.input;
  io.write_file("/ump/input.json", input.dump() + "\n", 0644, live_->stop().get_token());

  auto running = advance(services_.store, services_.index, key_, apis::Phase::running,
                         [&](apis::RunStatus& status) { status.sandbox = result_.sandbox; });
  if (!running) stop(Stop::removed);
  if (live_->stop().stop_requested()) return ending_of_stop();
  note("run.status", json::Value::object({{"phase", "Running"}}));

  agent::Params params{.run = *live_,
                       .sandbox = io,
                       .model = model,
                       .clock = services_.clock,
                       .instruction = job_.instruction,
                       .trigger = run_.trigger,
                       .input = input,
                       .extra_instructions = run_.instructions,
                       .max_turns = static_cast<int>(job_.limits.max_turns),
                       .time_zone = job_.schedule.time_zone};
  Time from = services_.clock.now();
  Defer timed([&] {
    result_.tools_ms = io.busy().count();
    result_.model_ms = std::max<int64_t>(0, since(from) - result_.tools_ms);
  });
  agent::Result result = services_.run_agent(params);
  if (auto reported = live_->failure()) note_error("the job reported a failure: " + *reported);
  result_.turns = result.turns;
  result_.summary = result.summary.empty() ? live_->summary() : result.summary;
  return ending_of(result);
}

Driver::Ending Driver::ending_of(const agent::Result& result) const {
  if (stopped() == Stop::gone) return ending_of_stop();  // what it says rests on a dead sandbox
  switch (result.end) {
    case agent::Result::End::succeeded:
      if (auto reported = live_->failure())  // `ump fail`: the job's code knows better
        return {apis::Phase::failed, "ReportedFailure", *reported};
      return {apis::Phase::succeeded, "Finished", result.message};
    case agent::Result::End::failed:
      return {apis::Phase::failed, "AgentFailed", result.message};
    case agent::Result::End::stopped:
      break;
  }
  return ending_of_stop();
}

Driver::Ending Driver::ending_of_stop() const {
  switch (stopped()) {
    case Stop::cancelled:
      return {apis::Phase::cancelled, "Cancelled", kCancelled};
    case Stop::timeout:
      return {apis::Phase::timed_out, "Timeout", kTimedOut};
    case Stop::shutdown:
      return {apis::Phase::failed, "Interrupted", kInterrupted};
    case Stop::gone:
      return {apis::Phase::failed, "SandboxGone", kSandboxGone};
    case Stop::removed:
      return {apis::Phase::cancelled, "Removed", "the run was removed while it executed"};
    case Stop::none:
      break;
  }
  return {apis::Phase::failed, "AgentFailed", "the agent stopped without a result"};
}

Driver::Ending Driver::ending_of_error(const Error& error) const {
  if (stopped() != Stop::none) return ending_of_stop();
  if (says_gone(error)) return {apis::Phase::failed, "SandboxGone", error.message()};
  bool sandbox = error.message().starts_with("Failed to create the sandbox");
  return {apis::Phase::failed, sandbox ? "SandboxFailed" : "Refused", error.message()};
}

void Driver::note(std::string_view type, json::Value data) {
  try {
    live_->record(type, std::move(data));
  } catch (const Error& e) {  // a full disk must not end the run that could make room
    log::warn("timeline event not written",
              {{"run", key_.name}, {"type", type}, {"error", log::clip(e.message())}});
  }
}

// The cause is what a person can mend: a socket without permission waits for ever too.
void Driver::note_waiting(const std::string& cause) {
  std::string text = "the container engine does not answer; waiting for it: " + log::clip(cause);
  log::warn("run waits for the container engine",
            {{"run", key_.ns + "/" + key_.name}, {"error", log::clip(cause)}});
  note("log", json::Value::object({{"message", text}}));
}

void Driver::note_error(const std::string& message) {
  note("error", json::Value::object({{"message", message}}));
}

}  // namespace umpteenth::controllers::run
