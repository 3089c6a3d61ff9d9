// One run while it executes: budget, outputs, state, steps, timeline. Everything a sandbox or a
// model can push is bounded here. Thread-safe; owned by the Registry and the run's driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "runs/egress.h"
#include "store/store.h"

namespace umpteenth::runs {

struct RunInfo {
  std::string ns, name, uid;  // of the Run
  std::string job;
  json::Value job_spec;            // resolved, as in Run.spec.jobSpec
  int64_t max_cost_micro_usd = 0;  // 0 = off
  std::vector<std::string> declared_outputs;
  Time deadline;
  EgressGrant egress;  // nothing, unless it is set
};

// Money in micro-USD. A reservation is settled once with what was really charged.
class Budget {
 public:
  explicit Budget(int64_t limit) : limit_(limit) {}
  int64_t spent() const;
  int64_t reserved() const;  // by calls under way
  bool exhausted() const;    // spent >= limit, limit set
  void charge(int64_t micro_usd, int64_t input_tokens, int64_t output_tokens);
  // One call may start when nothing else is reserved, even if it exceeds the rest.
  bool reserve(int64_t micro_usd);
  void settle(int64_t reserved, int64_t charged, int64_t input_tokens, int64_t output_tokens);
  int64_t input_tokens() const;
  int64_t output_tokens() const;
  int64_t limit() const { return limit_; }

 private:
  mutable std::mutex mutex_;
  int64_t limit_, spent_ = 0, reserved_ = 0, in_flight_ = 0, input_ = 0, output_ = 0;
};

class LiveRun {
 public:
  LiveRun(RunInfo info, store::Store& store, Clock& clock);

  const RunInfo& info() const { return info_; }
  Budget& budget() { return budget_; }
  std::stop_source& stop() { return stop_; }  // cancel, timeout and shutdown end the run's work

  // Timeline: {"seq","time","type",…data}. Payloads over 16 KiB are spilled to a blob. Types and
  // caps: docs/timeline.md. record_call counts toward the 1000 broker calls; what goes beyond is
  // dropped unless it may have changed something, and one note says so. Both throw what the store
  // throws (unavailable: disk full).
  void record(std::string_view type, json::Value data);
  void record_call(std::string_view name, json::Value data, bool may_change_something);

  // Job state, kept between runs. Error(invalid) names the limit passed.
  std::optional<std::string> state_get(std::string_view key) const;
  // True for this run's first write.
  bool state_set(std::string_view key, std::string_view value);
  json::Value state_all() const;
  std::vector<std::string> state_keys() const;

  // Outputs: at most 100 keys, 1 MiB in all.
  void set_output(std::string_view key, json::Value value);
  json::Value outputs() const;
  void add_step(std::string_view name);  // at most 1000, 200 bytes each
  std::string last_step() const;
  void set_summary(std::string_view text);  // at most 16 KiB
  std::string summary() const;
  // Cut at 2000 characters, since a failure must not get lost for its length; the first stays.
  void set_failure(std::string_view reason);
  std::optional<std::string> failure() const;

  // 8 requests at once, 64 waiting; Error(too_many_requests) beyond. The guard ends the turn.
  class Turn {
   public:
    explicit Turn(LiveRun& run) : run_(&run) {}
    Turn(Turn&& other) noexcept : run_(std::exchange(other.run_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn();

   private:
    LiveRun* run_;
  };
  Turn take_turn();
  // The run is over: no turn is given any more (Error(unauthorized)), those waiting are refused.
  // Asks stop(), then waits up to grace for turns under way, so that a model call still running is
  // counted; what is then still reserved is to be charged by the caller. False when grace ran out.
  bool close(Duration grace);

 private:
  friend class Turn;
  void append(std::string_view type, json::Value data);

  RunInfo info_;
  store::Store& store_;
  Clock& clock_;
  Budget budget_;
  std::stop_source stop_;
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace umpteenth::runs
