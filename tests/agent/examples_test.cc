// The manifests of examples/jobs are valid, and each runs to the end that its comment promises,
// with its commands really carried out.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "agent/agent.h"
#include "apis/job.h"
#include "apis/lifecycle.h"
#include "apis/model_provider.h"
#include "apis/object.h"
#include "apis/script.h"
#include "apis/yaml.h"
#include "models/scripted.h"
#include "store/open.h"
#include "tests/support/local_sandbox.h"
#include "tests/support/paths.h"

namespace umpteenth::agent {
namespace {

namespace fs = std::filesystem;

const fs::path kExamples = fs::path(support::source_dir()) / "examples";

std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

struct Example {
  apis::JobSpec job;
  apis::ModelProviderSpec provider;
  json::Value job_spec;
};

// As the server takes a manifest in: strictly, with defaults, the namespace from the path.
Example load(const std::string& name) {
  Example example;
  for (const apis::YamlDocument& document :
       apis::parse_yaml(slurp(kExamples / "jobs" / (name + ".yaml")))) {
    const apis::Kind* kind = apis::find_kind_by_name(document.value.get_string("kind"));
    if (!kind) throw Error(Code::invalid, name + ": unknown kind");
    apis::WriteOptions options;
    options.field_validation = apis::FieldValidation::strict;
    options.now = system_clock().now();
    json::Value manifest = document.value;
    manifest["metadata"].set("namespace", "default");
    const json::Value object = apis::prepare_create(*kind, manifest, options).object;
    if (kind->kind == "Job") {
      example.job_spec = object.get("spec");
      example.job = apis::job_spec_from(example.job_spec);
      EXPECT_EQ(apis::name_of(object), name);
    } else {
      EXPECT_EQ(kind->kind, "ModelProvider");
      example.provider = apis::model_provider_spec_from(object.get("spec"));
    }
  }
  return example;
}

struct Outcome {
  Result result;
  json::Value outputs;
};

class Examples : public testing::Test {
 protected:
  Outcome run(const std::string& name, const json::Value& input = {},
              const std::function<void(runs::LiveRun&)>& meanwhile = {}) {
    const Example example = load(name);
    sandbox = std::make_unique<support::LocalSandbox>(input);
    runs::RunInfo info;
    info.ns = "default";
    info.job = name;
    info.name = name + "-" + std::to_string(++runs_);
    info.uid = info.name;
    info.job_spec = example.job_spec;
    info.declared_outputs = example.job.outputs;
    runs::LiveRun live(info, *store, system_clock());
    // `ump output set` reaches the run through the broker; here by this.
    CollectUmp io(*sandbox, live);
    models::Model model{
        std::make_shared<models::ScriptedClient>(
            example.job.model.provider, apis::script_from(example.provider.script), system_clock()),
        example.job.model.provider,
        "scripted",
        "scripted",
        128'000,
        {}};
    std::jthread other;
    if (meanwhile) other = std::jthread([&] { meanwhile(live); });
    const Result result = run_agent({live,
                                     io,
                                     model,
                                     system_clock(),
                                     example.job.instruction,
                                     "Manual",
                                     input,
                                     "",
                                     static_cast<int>(example.job.limits.max_turns),
                                     "",
                                     {Duration(0), Duration(0), Duration(0)}});
    return {result, live.outputs()};
  }

  struct CollectUmp : runs::SandboxIO {
    CollectUmp(support::LocalSandbox& local, runs::LiveRun& live) : local_(local), live_(live) {}
    runs::ExecOutcome exec(const runs::ExecRequest& request, std::stop_token stop) override {
      const size_t before = local_.ump_calls().size();
      const runs::ExecOutcome outcome = local_.exec(request, stop);
      const auto calls = local_.ump_calls();
      for (size_t i = before; i < calls.size(); ++i) {
        std::istringstream words(calls[i]);
        std::string group, verb, key, value;
        words >> group >> verb >> key >> value;
        if (group == "output" && verb == "set") live_.set_output(key, json::parse(value));
        if (group == "step") live_.add_step(verb);
      }
      return outcome;
    }
    std::string read_file(const std::string& path, size_t max, std::stop_token stop) override {
      return local_.read_file(path, max, stop);
    }
    void write_file(const std::string& path, std::string_view bytes, int mode,
                    std::stop_token stop) override {
      local_.write_file(path, bytes, mode, stop);
    }
    support::LocalSandbox& local_;
    runs::LiveRun& live_;
  };

  std::unique_ptr<store::Store> store = store::make_memory_store();
  std::unique_ptr<support::LocalSandbox> sandbox;

 private:
  int runs_ = 0;
};

TEST_F(Examples, every_file_is_valid_commented_and_without_network) {
  size_t files = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(kExamples / "jobs")) {
    ASSERT_EQ(file.path().extension(), ".yaml") << file.path();
    ++files;
    const std::string name = file.path().stem().string();
    const Example example = load(name);
    EXPECT_EQ(example.job.network.mode, apis::NetworkMode::none) << name;
    EXPECT_EQ(example.provider.type, "Scripted") << name;
    EXPECT_EQ(example.job.model.provider, name + "-script");
    const std::string text = slurp(file.path());
    EXPECT_TRUE(text.starts_with("# " + name + ": ")) << name;
    EXPECT_NE(text.find("# Look at:"), std::string::npos) << name;
  }
  EXPECT_GE(files, 6U);
}

TEST_F(Examples, hello_greets_as_often_as_it_is_told) {
  const Outcome three = run("hello", json::parse(R"({"n":3})"));
  EXPECT_EQ(three.result.end, Result::End::succeeded) << three.result.message;
  EXPECT_EQ(three.outputs, json::parse(R"({"greeting":"hello number 3","count":3})"));
  EXPECT_EQ(sandbox->artifact("greetings.txt"), "hello number 1\nhello number 2\nhello number 3\n");
  EXPECT_EQ(run("hello").outputs.get_int("count"), 1);
}

TEST_F(Examples, log_triage_counts_the_errors_of_the_file_it_is_given) {
  const Outcome outcome =
      run("log-triage", json::parse(slurp(kExamples / "inputs" / "log-triage.json")));
  EXPECT_EQ(outcome.result.end, Result::End::succeeded) << outcome.result.message;
  EXPECT_EQ(outcome.outputs, json::parse(R"({"errors":5,"worst":"db"})"));
  const std::string report = sandbox->artifact("report.md");
  EXPECT_NE(report.find("| db | 3 |\n| pay | 2 |"), std::string::npos) << report;
  EXPECT_NE(report.find("db    connection lost"), std::string::npos) << report;
  const Outcome quiet = run("log-triage", json::parse(R"({"log":"08:00 INFO web fine\n"})"));
  EXPECT_EQ(quiet.outputs.get_int("errors", -1), 0) << quiet.result.message;
}

TEST_F(Examples, csv_pipeline_repairs_its_script) {
  const Outcome outcome = run("csv-pipeline");
  EXPECT_EQ(outcome.result.end, Result::End::succeeded) << outcome.result.message;
  EXPECT_EQ(outcome.outputs, json::parse(R"({"rows":4,"total":445,"best":"east"})"));
  EXPECT_EQ(sandbox->artifact("totals.csv"), "east,200\nsouth,125\nnorth,120\n");
  EXPECT_EQ(outcome.result.turns, 3);
}

TEST_F(Examples, heartbeat_counts_on_from_run_to_run) {
  EXPECT_EQ(run("heartbeat").outputs.get_int("beat"), 1);
  EXPECT_EQ(run("heartbeat").outputs.get_int("beat"), 2);
  EXPECT_EQ(run("heartbeat").outputs.get_int("beat"), 3);
  EXPECT_FALSE(load("heartbeat").job.schedule.cron.empty());
}

TEST_F(Examples, failing_fails_and_says_why) {
  const Outcome outcome = run("failing");
  EXPECT_EQ(outcome.result.end, Result::End::failed);
  EXPECT_EQ(outcome.result.message, "There is no price list at /workspace/prices.csv.");
  EXPECT_NE(sandbox->artifact("attempt.txt").find("prices.csv"), std::string::npos);
}

TEST_F(Examples, long_count_ends_at_once_when_it_is_cancelled) {
  const auto began = std::chrono::steady_clock::now();
  const Outcome outcome = run("long-count", {}, [&](runs::LiveRun& live) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!std::filesystem::exists(sandbox->workspace() / "reached") &&
           std::chrono::steady_clock::now() < limit)
      std::this_thread::yield();
    live.stop().request_stop();
  });
  EXPECT_EQ(outcome.result.end, Result::End::stopped);
  EXPECT_TRUE(std::filesystem::exists(sandbox->workspace() / "reached"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(25));
}

TEST_F(Examples, flaky_model_gets_there_in_the_end) {
  const Outcome outcome = run("flaky-model");
  EXPECT_EQ(outcome.result.end, Result::End::succeeded) << outcome.result.message;
  EXPECT_TRUE(outcome.outputs.get_string("day").ends_with("day"));
  EXPECT_EQ(outcome.result.turns, 3);
}

}  // namespace
}  // namespace umpteenth::agent
