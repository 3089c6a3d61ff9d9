// POST /v1/llm: a sandbox asks a model, within its run's budget.
#pragma once

#include "base/json.h"
#include "broker/broker.h"
#include "runs/live_run.h"

namespace umpteenth::broker {

struct LlmCall {
  std::string which = "utility";  // or agent
  std::string prompt, system;
  json::Value schema;  // an object where the answer must be JSON
  int max_tokens = 4096;
};

LlmCall parse_llm_call(const json::Value& body);  // Error(invalid) names the member and the rule
// What the call costs at most, in micro-USD.
int64_t worst_case(const LlmCall& call, const models::Price& price);

// {text | json, usage, cost}. Error: forbidden (the budget), invalid (the model refused),
// bad_gateway, unavailable, timeout. What was or may have been billed is charged to the run, and
// the call is on its timeline, whatever comes out.
json::Value run_llm_call(const LlmCall& call, const Options& options, runs::LiveRun& run);

}  // namespace umpteenth::broker
