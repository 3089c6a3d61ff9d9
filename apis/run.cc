#include "apis/run.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "apis/cells.h"
#include "apis/object.h"
#include "base/crypto.h"
#include "base/error.h"

namespace umpteenth::apis {
namespace {

using namespace schema;  // NOLINT(google-build-using-namespace): the schema reads as one text

struct PhaseRow {
  Phase phase;
  std::string_view name;
  int rank;  // a phase follows only phases of a lower rank
};
constexpr std::array kPhases{
    PhaseRow{Phase::queued, "Queued", 0},       PhaseRow{Phase::provisioning, "Provisioning", 1},
    PhaseRow{Phase::running, "Running", 2},     PhaseRow{Phase::verifying, "Verifying", 3},
    PhaseRow{Phase::succeeded, "Succeeded", 4}, PhaseRow{Phase::failed, "Failed", 4},
    PhaseRow{Phase::timed_out, "TimedOut", 4},  PhaseRow{Phase::cancelled, "Cancelled", 4},
    PhaseRow{Phase::skipped, "Skipped", 4},
};

const PhaseRow& row(Phase phase) {
  return *std::find_if(kPhases.begin(), kPhases.end(),
                       [&](const PhaseRow& r) { return r.phase == phase; });
}

bool known_phase(std::string_view text) {
  return text.empty() || std::any_of(kPhases.begin(), kPhases.end(),
                                     [&](const PhaseRow& r) { return r.name == text; });
}

Node spec() {
  return object(
      "One execution of a job. Never changes, except cancelRequested from false to true.",
      {{"job", resource_name("The Job.").min_length(1).required()},
       {"jobGeneration", integer("Generation of the Job it was made from.").at_least(0)},
       {"jobSpec", object("The job's spec it runs with, workspace defaults filled in.", {}).open()},
       {"trigger", text("What started it.")
                       .one_of({"Manual", "Schedule", "Webhook", "API", "Retry"})
                       .by_default("Manual")},
       {"input", any("Input, any JSON.")},
       {"instructions",
        text("Extra instructions for this run, at most 10000 characters.").max_length(10000)},
       {"mode",
        text("How it runs.").one_of({"Explore", "Assisted", "Scripted"}).by_default("Explore")},
       {"cancelRequested", boolean("Ends it; cannot be taken back.").by_default(false)},
       {"scheduledFor", schema::time("The occurrence of the schedule that it stands for.")}});
}

Node run_status() {
  const auto ms = [](const char* what) { return integer(what).at_least(0); };
  return schema::status(
      {{"phase", text("Where it is; moves forward only.")
                     .one_of({"Queued", "Provisioning", "Running", "Verifying", "Succeeded",
                              "Failed", "TimedOut", "Cancelled", "Skipped"})},
       {"reason", text("Why it ended, one CamelCase word.")},
       {"message", text("Why it ended, for people.")},
       {"startTime", schema::time("When a sandbox was begun.")},
       {"completionTime", schema::time("When it ended.")},
       {"durations", object("Milliseconds.", {{"queueMs", ms("Waiting in the queue.")},
                                              {"imageMs", ms("Waiting for its image.")},
                                              {"provisionMs", ms("Making the sandbox.")},
                                              {"modelMs", ms("In model calls.")},
                                              {"toolsMs", ms("In tools.")},
                                              {"totalMs", ms("From start to end.")}})
                         .open()},
       {"tokens", object("Model tokens.", {{"input", integer("Read.").at_least(0)},
                                           {"output", integer("Written.").at_least(0)}})
                      .open()},
       {"costUSD", number("US dollars.").at_least(0)},
       {"turns", integer("Model turns.").at_least(0)},
       {"outputs", object("Outputs that the run set.", {}).open()},
       {"summary", text("What it did.")},
       {"artifacts",
        list("Files kept.",
             object("One file.", {{"path", text("Path below the artifacts folder.").required()},
                                  {"size", integer("Bytes.").at_least(0)},
                                  {"digest", text("sha256 in hex.")}}))},
       {"sandbox", object("Where it ran.", {{"container", text("Container id.")},
                                            {"network", text("Network.")},
                                            {"endpoint", text("Broker endpoint.")},
                                            {"image", text("Image digest.")},
                                            {"runtime", text("Container runtime.")},
                                            {"engine", text("SandboxEngine.")}})
                       .open()},
       {"egress", object("What it reached.", {}).open()}});
}

json::Value path_or_none(const json::Value& v) {
  return v.is_string() && !v.as_string().empty() ? v : json::Value();
}

json::Value duration_cell(const json::Value& o, Time now) {
  const json::Value& status = o.get("status");
  const std::string start = status.get_string("startTime");
  if (start.empty()) return nullptr;
  const std::string end = status.get_string("completionTime");
  return format_age((end.empty() ? now : parse_time(end)) - parse_time(start));
}

std::vector<Column> columns() {
  return {at("Job", "string", "Job it executes.", {"spec", "job"}),
          {"Phase", "string", "Where it is.", 0,
           [](const json::Value& o, Time) {
             return json::Value(o.get("status").get_string("phase", "Queued"));
           }},
          at("Trigger", "string", "What started it.", {"spec", "trigger"}),
          age_column(),
          {"Duration", "string", "Time since its start, or how long it took.", 0, duration_cell},
          {"Cost", "string", "US dollars.", 0,
           [](const json::Value& o, Time) {
             const json::Value& cost = o.get("status").get("costUSD");
             return cost.is_number() ? json::Value(format_usd(cost.as_double())) : json::Value();
           }},
          at("Mode", "string", "How it runs.", {"spec", "mode"}, kWide),
          at("Turns", "integer", "Model turns.", {"status", "turns"}, kWide),
          {"Image", "string", "Image digest.", kWide,
           [](const json::Value& o, Time) {
             return path_or_none(o.at_path({"status", "sandbox", "image"}));
           }},
          {"Sandbox", "string", "Container, shortened.", kWide, [](const json::Value& o, Time) {
             const std::string id = o.at_path({"status", "sandbox"}).get_string("container");
             return id.empty() ? json::Value() : json::Value(id.substr(0, 12));
           }}};
}

void check_spec_unchanged(const json::Value& spec, const json::Value& before,
                          std::vector<Cause>& causes) {
  if (before.get_bool("cancelRequested") && !spec.get_bool("cancelRequested"))
    causes.push_back({"spec.cancelRequested", "Forbidden: a cancellation cannot be taken back",
                      "FieldValueForbidden"});
  json::Value a = spec, b = before;
  a.erase("cancelRequested");
  b.erase("cancelRequested");
  if (a == b) return;
  std::string which;
  for (const json::Member& m : a.members())
    if (b.get(m.key) != m.value) which = m.key;
  for (const json::Member& m : b.members())
    if (!a.find(m.key)) which = m.key;
  causes.push_back({"spec." + which,
                    "Forbidden: a run's spec never changes, except cancelRequested from false to "
                    "true",
                    "FieldValueForbidden"});
}

// Nothing is left to be cancelled.
void check_cancel(const json::Value& object, const json::Value& old, const std::string& phase,
                  std::vector<Cause>& causes) {
  const bool asked = !old.get("spec").get_bool("cancelRequested") &&
                     object.get("spec").get_bool("cancelRequested");
  if (!asked || !known_phase(phase) || !terminal(phase_from(phase))) return;
  causes.push_back({"spec.cancelRequested", "Forbidden: the run has already ended: " + phase,
                    "FieldValueForbidden"});
}

void check_run(const json::Value& object, const json::Value* old, std::vector<Cause>& causes) {
  if (!old) return;
  check_spec_unchanged(object.get("spec"), old->get("spec"), causes);
  const std::string to = object.get("status").get_string("phase");
  const std::string from = old->get("status").get_string("phase");
  check_cancel(object, *old, from, causes);
  if (to == from || !known_phase(to) || !known_phase(from)) return;  // the schema says the rest
  if (!may_follow(phase_from(from), phase_from(to)))
    causes.push_back({"status.phase",
                      "Invalid value: " + json::quote(to) + ": may not follow " +
                          json::quote(from.empty() ? "Queued" : from),
                      "FieldValueInvalid"});
}

constexpr char kBase32[] = "abcdefghijklmnopqrstuvwxyz234567";

}  // namespace

std::string_view to_string(Phase phase) { return row(phase).name; }

Phase phase_from(std::string_view text) {
  if (text.empty()) return Phase::queued;
  for (const PhaseRow& r : kPhases)
    if (r.name == text) return r.phase;
  throw Error(Code::bad_request, "unknown phase " + json::quote(text.substr(0, 64)));
}

bool terminal(Phase phase) { return row(phase).rank == 4; }

bool may_follow(Phase from, Phase to) {
  if (from == to) return true;
  if (to == Phase::skipped) return from == Phase::queued;
  return row(to).rank > row(from).rank;
}

RunSpec run_spec_from(const json::Value& v) {
  RunSpec s;
  s.job = v.get_string("job");
  s.job_generation = v.get_int("jobGeneration");
  s.job_spec = v.get("jobSpec");
  s.trigger = v.get_string("trigger", "Manual");
  s.input = v.get("input");
  s.instructions = v.get_string("instructions");
  s.mode = v.get_string("mode", "Explore");
  s.cancel_requested = v.get_bool("cancelRequested");
  s.scheduled_for = v.get_string("scheduledFor");
  return s;
}

json::Value to_json(const RunSpec& s) {
  json::Value v = json::Value::object({{"job", s.job}, {"jobGeneration", s.job_generation}});
  if (!s.job_spec.is_null()) v.set("jobSpec", s.job_spec);
  v.set("trigger", s.trigger);
  if (!s.input.is_null()) v.set("input", s.input);
  if (!s.instructions.empty()) v.set("instructions", s.instructions);
  v.set("mode", s.mode);
  v.set("cancelRequested", s.cancel_requested);
  if (!s.scheduled_for.empty()) v.set("scheduledFor", s.scheduled_for);
  return v;
}

RunStatus run_status_from(const json::Value& v) {
  RunStatus s;
  s.phase = phase_from(v.get_string("phase"));
  s.reason = v.get_string("reason");
  s.message = v.get_string("message");
  s.start_time = v.get_string("startTime");
  s.completion_time = v.get_string("completionTime");
  const json::Value& d = v.get("durations");
  s.queue_ms = d.get_int("queueMs");
  s.image_ms = d.get_int("imageMs");
  s.provision_ms = d.get_int("provisionMs");
  s.model_ms = d.get_int("modelMs");
  s.tools_ms = d.get_int("toolsMs");
  s.total_ms = d.get_int("totalMs");
  s.input_tokens = v.get("tokens").get_int("input");
  s.output_tokens = v.get("tokens").get_int("output");
  s.cost_micro_usd = std::llround(v.get_double("costUSD") * 1e6);
  s.turns = static_cast<int>(v.get_int("turns"));
  if (const json::Value& outputs = v.get("outputs"); outputs.is_object()) s.outputs = outputs;
  s.summary = v.get_string("summary");
  if (const json::Value& artifacts = v.get("artifacts"); artifacts.is_array())
    for (const json::Value& a : artifacts.items())
      s.artifacts.push_back({a.get_string("path"), a.get_string("digest"), a.get_int("size")});
  const json::Value& sandbox = v.get("sandbox");
  s.sandbox = {sandbox.get_string("container"), sandbox.get_string("network"),
               sandbox.get_string("endpoint"),  sandbox.get_string("image"),
               sandbox.get_string("runtime"),   sandbox.get_string("engine")};
  return s;
}

json::Value to_json(const RunStatus& s) {
  json::Value v = json::Value::object({{"phase", to_string(s.phase)}});
  const auto put = [&v](const char* key, const std::string& text) {
    if (!text.empty()) v.set(key, text);
  };
  put("reason", s.reason);
  put("message", s.message);
  put("startTime", s.start_time);
  put("completionTime", s.completion_time);
  v.set("durations", json::Value::object({{"queueMs", s.queue_ms},
                                          {"imageMs", s.image_ms},
                                          {"provisionMs", s.provision_ms},
                                          {"modelMs", s.model_ms},
                                          {"toolsMs", s.tools_ms},
                                          {"totalMs", s.total_ms}}));
  v.set("tokens", json::Value::object({{"input", s.input_tokens}, {"output", s.output_tokens}}));
  v.set("costUSD", static_cast<double>(s.cost_micro_usd) / 1e6);
  v.set("turns", s.turns);
  if (!s.outputs.empty()) v.set("outputs", s.outputs);
  put("summary", s.summary);
  for (const Artifact& a : s.artifacts)
    v["artifacts"].push_back(
        json::Value::object({{"path", a.path}, {"size", a.size}, {"digest", a.digest}}));
  json::Value sandbox = json::Value::object();
  for (const auto& [key, text] :
       {std::pair<const char*, const std::string&>("container", s.sandbox.container),
        {"network", s.sandbox.network},
        {"endpoint", s.sandbox.endpoint},
        {"image", s.sandbox.image},
        {"runtime", s.sandbox.runtime},
        {"engine", s.sandbox.engine}})
    if (!text.empty()) sandbox.set(key, text);
  if (!sandbox.empty()) v.set("sandbox", std::move(sandbox));
  return v;
}

std::string make_run_name(std::string_view job, Time now) {
  // 9 digits of time (ms) sort by age for the next thousand years; 6 random ones tell apart.
  std::string suffix(15, 'a');
  auto ms = static_cast<uint64_t>(now.time_since_epoch().count());
  for (int i = 8; i >= 0; --i, ms /= 32) suffix[static_cast<size_t>(i)] = kBase32[ms % 32];
  const std::string random = crypto::random_bytes(6);
  for (size_t i = 0; i < 6; ++i)
    suffix[9 + i] = kBase32[static_cast<unsigned char>(random[i]) % 32];
  std::string_view stem = job.substr(0, 200);
  while (!stem.empty() && (stem.back() == '-' || stem.back() == '.')) stem.remove_suffix(1);
  return std::string(stem) + "-" + suffix;
}

const Kind& run_kind() {
  static const Kind kind = [] {
    Kind k;
    k.kind = "Run";
    k.plural = "runs";
    k.singular = "run";
    k.categories = {"all", "umpteenth"};
    k.storage = Storage::database;
    k.description = "One execution of a job.";
    k.spec_schema = spec().take();
    k.status_schema = run_status().take();
    k.columns = columns();
    k.field_selectors = {"spec.job", "status.phase", "spec.trigger"};
    k.check = check_run;
    k.verbs = kAllVerbs;
    return k;
  }();
  return kind;
}

}  // namespace umpteenth::apis
