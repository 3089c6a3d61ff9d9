#include "server/run_writes.h"

#include "apis/job_rules.h"
#include "apis/object.h"
#include "apis/run.h"

namespace umpteenth::server {
namespace {

Trigger& trigger_of(Env& env) {
  if (env.trigger) return *env.trigger;
  throw Error(Code::unavailable, "runs cannot be started yet: the controllers are not running")
      .retry_after(1);
}

// An input that the job does not declare is to a run what an unknown field is to an object:
// refused, warned about or let through, as the client asks.
void check_inputs(const Env& env, Call& call, const WriteQuery& query,
                  const Trigger::Request& request) {
  if (query.options.field_validation == apis::FieldValidation::ignore) return;
  const auto job = env.store.find({"jobs", request.ns, request.job});
  if (!job) return;  // the trigger says so
  auto causes =
      apis::undeclared_inputs(apis::job_spec_from(job->parse().get("spec")), request.input);
  std::string list;
  for (const Cause& c : causes) {
    const std::string text = c.field + ": " + c.message;
    if (query.options.field_validation == apis::FieldValidation::warn)
      call.warnings.push_back(text);
    list += (list.empty() ? "" : ", ") + text;
  }
  if (!causes.empty() && query.options.field_validation == apis::FieldValidation::strict)
    throw Error(Code::invalid, list, std::move(causes));
}

http::Response start(Env& env, Call& call, const WriteQuery& query,
                     const Trigger::Request& request) {
  check_inputs(env, call, query, request);
  return answer_object(call, 201, trigger_of(env).start(request));
}

[[noreturn]] void refuse_field(const std::string& field, const std::string& message) {
  throw invalid_field(field, message, "FieldValueForbidden");
}

}  // namespace

http::Response create_run(Env& env, Call& call, const WriteQuery& query, const json::Value& run) {
  const json::Value& spec = run.get("spec");
  if (!spec.is_object() || spec.get_string("job").empty())
    throw invalid_field("spec.job", "Required value", "FieldValueRequired");
  for (const char* given : {"jobSpec", "jobGeneration", "scheduledFor"})
    if (spec.find(given))
      call.warnings.push_back(std::string("spec.") + given + " is set by the server: left out");
  if (spec.get_bool("cancelRequested"))
    refuse_field("spec.cancelRequested", "Forbidden: a run is cancelled after it was created");
  const json::Value& meta = run.get("metadata");
  Trigger::Request request;
  request.ns = call.target.ns;
  request.job = spec.get_string("job");
  request.trigger = "API";
  request.actor = call.who.username;
  request.input = spec.get("input");
  request.instructions = spec.get_string("instructions");
  request.name = meta.get_string("name");
  if (request.name.empty() && !meta.get_string("generateName").empty())
    request.name = apis::make_run_name(meta.get_string("generateName"), call.now);
  request.labels = meta.get("labels");
  request.annotations = meta.get("annotations");
  request.dry_run = query.dry_run;
  return start(env, call, query, request);
}

http::Response run_job(Env& env, Call& call) {
  const WriteQuery query = read_write_query(call);
  json::Value body = json::Value::object();
  if (!call.http.body.empty()) body = read_body(call.http, false);
  if (!body.is_object())
    throw Error(Code::bad_request,
                std::string("the body must be an object, found ") + body.type_name());
  for (const json::Member& m : body.members())
    if (m.key != "input" && m.key != "instructions" && m.key != "trigger")
      throw Error(Code::bad_request, "unknown field " + json::quote(m.key) +
                                         ": the body has input, instructions and trigger");
  Trigger::Request request;
  request.ns = call.target.ns;
  request.job = call.target.name;
  request.trigger = body.get_string("trigger", "Manual");
  if (request.trigger != "Manual" && request.trigger != "API" && request.trigger != "Retry")
    throw invalid_field("trigger",
                        "Unsupported value: " + json::quote(request.trigger) +
                            ": supported values: \"Manual\", \"API\", \"Retry\"",
                        "FieldValueNotSupported");
  request.actor = call.who.username;
  request.input = body.get("input");
  request.instructions = body.get_string("instructions");
  request.dry_run = query.dry_run;
  return start(env, call, query, request);
}

void note_canceller(const Call& call, const json::Value& old, json::Value& run) {
  if (old.get("spec").get_bool("cancelRequested") || !run.get("spec").get_bool("cancelRequested"))
    return;
  run["metadata"]["annotations"].set(apis::kCancelledBy, call.who.username);
}

}  // namespace umpteenth::server
