// A run, a sandbox and a model for the agent's tests, all fake but the run.
#pragma once

#include <gtest/gtest.h>

#include "agent/agent.h"
#include "store/open.h"
#include "tests/support/fake_model.h"
#include "tests/support/fake_sandbox.h"

namespace umpteenth::agent {

class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    info.ns = "default";
    info.name = "hello-1";
    info.uid = "uid-1";
    info.job = "hello";
    info.job_spec = json::parse(R"({"network":{"mode":"None"}})");
  }

  runs::LiveRun& run() {
    if (!run_) run_ = std::make_unique<runs::LiveRun>(info, *store, clock);
    return *run_;
  }

  Params params() {
    Params params{run(), sandbox, {}, clock, "Say hello.", "Manual", {}, "", 60, "", {}};
    params.model = {model, "main", "fake", "fake-1", 128'000, price};
    params.transient_retries = {Duration(2'000), Duration(10'000), Duration(30'000)};
    return params;
  }

  Result go() { return run_agent(params()); }

  // Runs one call and finishes; what the model was told about it.
  models::Part result_of(models::ToolCall made) {
    model->then(support::calls({std::move(made)})).then(finish());
    EXPECT_EQ(go().end, Result::End::succeeded);
    const auto prompts = model->prompts();
    return prompts.back().messages.back().parts.at(0);
  }

  static models::Answer finish(
      const char* arguments = R"({"status":"success","summary":"all done"})") {
    return support::calls({support::call("end", "finish", arguments)});
  }

  std::vector<json::Value> timeline(std::string_view type) {
    std::vector<json::Value> events;
    for (const store::TimelineRow& row : store->timeline_read("uid-1", 0, 100'000)) {
      json::Value event = json::parse(row.json);
      if (event.get_string("type") == type) events.push_back(std::move(event));
    }
    return events;
  }

  std::unique_ptr<store::Store> store = store::make_memory_store();
  FakeClock clock{parse_time("2026-11-30T08:00:00Z")};
  runs::RunInfo info;
  support::FakeSandbox sandbox;
  std::shared_ptr<support::FakeModel> model = std::make_shared<support::FakeModel>();
  models::Price price;

 private:
  std::unique_ptr<runs::LiveRun> run_;
};

}  // namespace umpteenth::agent
