// A run's end: what it leaves is collected, its sandbox removed, its status written once.
#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/log.h"
#include "controllers/run/driver.h"
#include "controllers/run/status_write.h"
#include "controllers/runtime/job_events.h"

namespace umpteenth::controllers::run {
namespace {

constexpr Duration kCollectWithin{120'000};
constexpr Duration kRemoveWithin{60'000};
constexpr Duration kWriteWithin{3'600'000};
constexpr Duration kRetry{250};
constexpr Duration kStopGrace{500};
constexpr size_t kTarOverhead = 16U << 20;  // headers and padding of the files

}  // namespace

// Calls f until it does not throw unavailable. The run's own stop has come already, so that only
// the shutdown of umpd cuts this short.
template <typename F>
void Driver::until(Time give_up, const char* what, const F& f) {
  while (true) {
    try {
      return f();
    } catch (const Error& e) {
      bool later = services_.clock.now() >= give_up || stopped() == Stop::shutdown;
      if (e.code() != Code::unavailable || later) throw;
      log::debug("trying again", {{"run", key_.name}, {"what", what}});
    }
    services_.clock.sleep_for(kRetry, {});
  }
}

// A sandbox that is not there any more has no results to keep: the run has failed with it.
void Driver::collect(Ending& ending) {
  Stop why = stopped();
  if (!sandbox_ || why == Stop::shutdown || why == Stop::removed || why == Stop::gone) return;
  Time give_up = services_.clock.now() + kCollectWithin;
  try {
    until(give_up, "collecting the artifacts", [&] {
      engine::Engine& engine = handle_->engine();
      // Nothing of the run moves any more when its files are read.
      engine.stop_container(sandbox_->container, kStopGrace);
      std::string archive =
          engine.get_archive(sandbox_->container, "/ump/outputs", kMaxArtifactBytes + kTarOverhead);
      auto collected = collect_artifacts(
          archive, [&](std::string_view bytes) { return services_.store.blob_put(uid_, bytes); });
      result_.artifacts = std::move(collected.artifacts);
      for (const auto& refusal : collected.refused) note_error("artifact refused: " + refusal);
    });
  } catch (const Error& e) {
    if (e.code() == Code::not_found) {  // no folder or no container: nothing to keep
      if (ending.phase == apis::Phase::succeeded && sandbox_is_lost())
        ending = {apis::Phase::failed, "SandboxGone", kSandboxGone};
      return;
    }
    std::string text =
        e.code() == Code::too_large
            ? "the artifacts exceed 50 MiB, 10000 files or 1024 bytes of a name; none was kept"
            : "collecting the artifacts failed: " + log::clip(e.message());
    note_error(text);
  }
}

bool Driver::sandbox_is_lost() {
  try {
    return !handle_->engine().find_container(sandbox_->container);
  } catch (const Error&) {  // not known
    return false;
  }
}

void Driver::remove_sandbox() {
  if (!sandbox_ && !params_) return;
  Time from = services_.clock.now();
  try {
    until(from + kRemoveWithin, "removing the sandbox", [&] {
      if (sandbox_) {
        destroy_sandbox(*handle_, *sandbox_);
      } else {
        clear_attempt(*handle_, *params_);
      }
    });
    if (sandbox_) note("sandbox.destroy", json::Value::object({{"durationMs", since(from)}}));
  } catch (const Error& e) {  // the sweep finds what is left
    log::warn("sandbox not removed", {{"run", key_.name}, {"error", log::clip(e.message())}});
    note_error("the sandbox could not be removed yet: " + log::clip(e.message()));
  }
}

void Driver::finish(const Ending& ending) {
  runs::Budget& budget = live_->budget();
  try {
    services_.spend.add(key_.ns, budget.spent());
  } catch (const Error& e) {
    log::warn("spending not recorded", {{"run", key_.name}, {"error", log::clip(e.message())}});
  }
  std::string told = ending.message;
  if (stopped() == Stop::cancelled) told = with_canceller(told, services_.store.find(key_));
  json::Value last =
      json::Value::object({{"phase", apis::to_string(ending.phase)}, {"reason", ending.reason}});
  if (!told.empty()) last.set("message", told);
  if (stopped() != Stop::removed) note("run.status", std::move(last));
  Time now = services_.clock.now();
  auto write = [&](apis::RunStatus& status) {
    status.reason = ending.reason;
    status.message = ending.message;
    status.completion_time = format_time(now);
    status.image_ms = result_.image_ms;
    status.provision_ms = result_.provision_ms;
    status.model_ms = result_.model_ms;
    status.tools_ms = result_.tools_ms;
    status.total_ms = since(began_);
    status.input_tokens = budget.input_tokens();
    status.output_tokens = budget.output_tokens();
    status.cost_micro_usd = budget.spent();
    status.turns = result_.turns;
    status.outputs = live_->outputs();
    status.summary = result_.summary;
    status.artifacts = result_.artifacts;
    status.sandbox = result_.sandbox;
  };
  store::RecordPtr stored;
  try {
    until(now + kWriteWithin, "writing the final status",
          [&] { stored = advance(services_.store, services_.index, key_, ending.phase, write); });
  } catch (const Error& e) {  // found in flight at the next start, it is failed as interrupted
    log::error("final status not written", {{"run", key_.name}, {"error", log::clip(e.message())}});
  }
  log::info("run ended", {{"run", key_.ns + "/" + key_.name},
                          {"phase", apis::to_string(ending.phase)},
                          {"reason", ending.reason}});
  if (!stored) return;
  bool good = ending.phase == apis::Phase::succeeded;
  json::Value object = stored->parse();
  tell_job(services_.events, services_.store, {key_, run_.job, ending.phase, told});
  if (good) {
    services_.events.normal(object, "Succeeded", "the run succeeded");
  } else {
    services_.events.warning(object, std::string(apis::to_string(ending.phase)), told);
  }
}

}  // namespace umpteenth::controllers::run
