#include "runs/live_run.h"

#include <condition_variable>

#include "base/error.h"
#include "runs/job_state.h"
#include "runs/text.h"
#include "runs/timeline.h"

namespace umpteenth::runs {
namespace {

constexpr size_t kTurnsAtOnce = 8;
constexpr size_t kTurnsWaiting = 64;
constexpr size_t kMaxOutputs = 100;
constexpr size_t kMaxOutputKeyCharacters = 200;
constexpr size_t kMaxOutputBytes = 1U << 20;
constexpr size_t kMaxSteps = 1000;
constexpr size_t kMaxStepBytes = 200;
constexpr size_t kMaxSummaryBytes = 16U << 10;
constexpr size_t kMaxFailureCharacters = 2000;

uint64_t last_sequence(const store::Store& store, std::string_view owner) {
  uint64_t last = 0;
  while (true) {
    const auto rows = store.timeline_read(owner, last, 1000);
    if (rows.empty()) return last;
    last = rows.back().seq;
  }
}

}  // namespace

struct LiveRun::Shared {
  std::shared_ptr<JobState> state;

  mutable std::mutex mutex;
  json::Value outputs = json::Value::object();
  size_t output_bytes = 0;
  size_t steps = 0;
  std::string last_step, summary;
  std::optional<std::string> failure;
  bool wrote_state = false;

  std::mutex timeline;
  std::optional<uint64_t> sequence;
  size_t calls = 0;

  std::mutex turns;
  std::condition_variable turn_ended;
  size_t running = 0, waiting = 0;
  bool closed = false;
};

LiveRun::LiveRun(RunInfo info, store::Store& store, Clock& clock)
    : info_(std::move(info)),
      store_(store),
      clock_(clock),
      budget_(info_.max_cost_micro_usd),
      shared_(std::make_shared<Shared>()) {
  shared_->state = JobState::of(store, state_space(info_.ns, info_.job));
}

void LiveRun::append(std::string_view type, json::Value data) {
  data = spill_large(std::move(data),
                     [this](std::string_view bytes) { return store_.blob_put(info_.uid, bytes); });
  if (!shared_->sequence) shared_->sequence = last_sequence(store_, info_.uid);
  json::Value event = json::Value::object(
      {{"seq", *shared_->sequence + 1}, {"time", format_time_ms(clock_.now())}, {"type", type}});
  for (json::Member& member : data.members())
    if (!event.find(member.key)) event.set(member.key, std::move(member.value));
  store_.timeline_append(info_.uid, {event.dump()});
  ++*shared_->sequence;
}

void LiveRun::record(std::string_view type, json::Value data) {
  const std::lock_guard lock(shared_->timeline);
  append(type, clip_event(std::move(data)));
}

void LiveRun::record_call(std::string_view name, json::Value data, bool may_change_something) {
  const std::lock_guard lock(shared_->timeline);
  const size_t limit = may_change_something ? kMaxBrokerCallsInAll : kMaxBrokerCalls;
  if (shared_->calls == kMaxBrokerCalls) {
    ++shared_->calls;
    append("log",
           json::Value::object({{"message",
                                 "the run made 1000 broker calls; from here on only those are "
                                 "recorded that may have changed something"}}));
  }
  if (shared_->calls >= limit) return;
  ++shared_->calls;
  data = clip_call(std::move(data));
  data.set("name", clip_characters(to_utf8(name), 500));
  append("broker.call", std::move(data));
}

std::optional<std::string> LiveRun::state_get(std::string_view key) const {
  return shared_->state->get(key);
}

bool LiveRun::state_set(std::string_view key, std::string_view value) {
  shared_->state->set(key, value);
  const std::lock_guard lock(shared_->mutex);
  return !std::exchange(shared_->wrote_state, true);
}

json::Value LiveRun::state_all() const { return shared_->state->all(); }

std::vector<std::string> LiveRun::state_keys() const { return shared_->state->keys(); }

void LiveRun::set_output(std::string_view key, json::Value value) {
  if (key.empty()) throw Error(Code::invalid, "the output key is empty");
  if (!is_utf8(key)) throw Error(Code::invalid, "an output key must be UTF-8 text");
  if (count_characters(key) > kMaxOutputKeyCharacters)
    throw Error(Code::invalid, "the output key is longer than " +
                                   std::to_string(kMaxOutputKeyCharacters) + " characters");
  const size_t size = key.size() + value.dump().size();
  const std::lock_guard lock(shared_->mutex);
  const json::Value* old = shared_->outputs.find(key);
  if (!old && shared_->outputs.size() >= kMaxOutputs)
    throw Error(Code::invalid, "a run has at most 100 outputs");
  const size_t old_size = old ? key.size() + old->dump().size() : 0;
  if (size > old_size && shared_->output_bytes + size - old_size > kMaxOutputBytes)
    throw Error(Code::invalid, "the outputs of a run are at most 1 MiB in all");
  shared_->outputs.set(key, std::move(value));
  shared_->output_bytes += size - old_size;
}

json::Value LiveRun::outputs() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->outputs;
}

void LiveRun::add_step(std::string_view name) {
  if (name.empty()) throw Error(Code::invalid, "the step has no name");
  if (name.size() > kMaxStepBytes)
    throw Error(Code::invalid, "the name of a step is at most 200 bytes");
  const std::lock_guard lock(shared_->mutex);
  if (shared_->steps >= kMaxSteps) throw Error(Code::invalid, "a run has at most 1000 steps");
  ++shared_->steps;
  shared_->last_step = to_utf8(name);
}

std::string LiveRun::last_step() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->last_step;
}

void LiveRun::set_summary(std::string_view text) {
  if (text.size() > kMaxSummaryBytes) throw Error(Code::invalid, "a summary is at most 16 KiB");
  const std::lock_guard lock(shared_->mutex);
  shared_->summary = to_utf8(text);
}

std::string LiveRun::summary() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->summary;
}

void LiveRun::set_failure(std::string_view reason) {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->failure)
    shared_->failure = clip_characters(to_utf8(reason), kMaxFailureCharacters - 1);
}

std::optional<std::string> LiveRun::failure() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->failure;
}

LiveRun::Turn LiveRun::take_turn() {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.turns);
  const auto over = [] { return Error(Code::unauthorized, "the run has ended"); };
  if (shared.closed) throw over();
  if (shared.running >= kTurnsAtOnce) {
    if (shared.waiting >= kTurnsWaiting)
      throw Error(Code::too_many_requests, "the run has too many requests waiting, try again")
          .retry_after(1);
    ++shared.waiting;
    shared.turn_ended.wait(lock, [&] { return shared.closed || shared.running < kTurnsAtOnce; });
    --shared.waiting;
    if (shared.closed) throw over();
  }
  ++shared.running;
  return Turn(*this);
}

LiveRun::Turn::~Turn() {
  if (!run_) return;
  {
    const std::lock_guard lock(run_->shared_->turns);
    --run_->shared_->running;
  }
  run_->shared_->turn_ended.notify_all();
}

bool LiveRun::close(Duration grace) {
  stop_.request_stop();
  std::unique_lock lock(shared_->turns);
  shared_->closed = true;
  shared_->turn_ended.notify_all();
  return shared_->turn_ended.wait_for(lock, grace, [&] { return shared_->running == 0; });
}

}  // namespace umpteenth::runs
