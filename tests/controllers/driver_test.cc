// A run from its start to its end, and every way it can go wrong.
#include <gtest/gtest.h>

#include <algorithm>

#include "apis/object.h"
#include "base/error.h"
#include "engine/tar.h"
#include "tests/controllers/world.h"

namespace umpteenth::controllers {
namespace {

using apis::Phase;

struct DriverTest : ::testing::Test {
  std::shared_ptr<Ground> ground = std::make_shared<Ground>();

  void expect_nothing_left() {
    EXPECT_EQ(ground->sandboxes(), 0U);
    EXPECT_EQ(ground->run_networks(), 0U);
    EXPECT_TRUE(ground->engine->find_container(ground->relay)) << "the relay is no leftover";
  }
};

TEST_F(DriverTest, a_run_goes_from_its_start_to_its_outputs_and_leaves_nothing_behind) {
  std::string seen_input;
  World world(ground, [&](const agent::Params& params) {
    seen_input = params.sandbox.read_file("/ump/input.json", 1000, {});
    params.run.set_output("n", 4);
    params.run.budget().charge(1500, 10, 20);
    return succeed("counted");
  });
  ground->engine->on_exec(support::argv_has("exec head"), [](support::FakeProcess& p) {
    p.out(p.read_file("/ump/input.json").value_or(""));
    return 0;
  });
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello", R"({"n":3})");
  ASSERT_TRUE(world.ends(run, Phase::succeeded)) << ground->run(run).dump_pretty();
  auto status = ground->status(run);
  EXPECT_EQ(seen_input, "{\"n\":3}\n");
  EXPECT_EQ(status.outputs.get_int("n"), 4);
  EXPECT_EQ(status.summary, "counted");
  EXPECT_EQ(status.turns, 1);
  EXPECT_EQ(status.cost_micro_usd, 1500);
  EXPECT_EQ(status.input_tokens, 10);
  EXPECT_FALSE(status.start_time.empty());
  EXPECT_FALSE(status.completion_time.empty());
  EXPECT_EQ(status.sandbox.engine, "default");
  EXPECT_EQ(
      ground->timeline(run),
      (std::vector<std::string>{"run.status Provisioning", "sandbox.image_wait", "sandbox.create",
                                "run.status Running", "sandbox.destroy", "run.status Succeeded"}));
  expect_nothing_left();
  EXPECT_TRUE(world.registry.all().empty()) << "its token must be worthless";
}

TEST_F(DriverTest, the_sandbox_is_hardened_and_its_configuration_carries_no_secret) {
  engine::ContainerSpec spec;
  std::vector<std::string> env;
  World world(ground, [&](const agent::Params& params) {
    auto listed = ground->engine->list_containers({{engine::kLabelRole, "sandbox"}});
    spec = ground->engine->spec_of(listed.at(0).id).value();
    runs::ExecRequest request;
    request.argv = {"true"};
    params.sandbox.exec(request, {});
    env = ground->engine->execs().back().env;
    EXPECT_EQ(ground->engine->execs().back().user, "1000:1000");
    return succeed();
  });
  json::Value secret = json::Value::object();
  ground->create(
      "secrets", "default", "github",
      json::Value::object(
          {{"sealedData",
            json::Value::object(
                {{"value", world.sealer.seal({"default", "github", "value"}, "s3cr3t-value")}})}})
          .dump());
  ground->create_job("hello", R"({"limits":{"timeoutSeconds":900},
      "secrets":[{"secret":"github","env":"GITHUB_TOKEN"},{"secret":"absent","env":"OTHER"},
                 {"secret":"github","env":"UMP_TOKEN"}]})");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::succeeded)) << ground->run(run).dump_pretty();
  EXPECT_EQ(spec.cap_drop, std::vector<std::string>{"ALL"});
  EXPECT_TRUE(spec.cap_add.empty());
  EXPECT_TRUE(spec.no_new_privileges);
  EXPECT_TRUE(spec.disable_healthcheck);
  EXPECT_FALSE(spec.privileged);
  EXPECT_EQ(spec.user, "0:0");
  EXPECT_EQ(spec.entrypoint,
            (std::vector<std::string>{"/usr/local/bin/ump", "init", "--ttl", "1200s"}));
  EXPECT_EQ(spec.memory_bytes, int64_t{1024} << 20);
  EXPECT_EQ(spec.pids, 256);
  EXPECT_EQ(spec.networks.size(), 1U) << "the run network and no way out";
  EXPECT_EQ(spec.extra_hosts.size(), 1U);
  EXPECT_EQ(spec.dns, std::vector<std::string>{"127.0.0.1"});
  EXPECT_TRUE(spec.env.empty());
  EXPECT_EQ(std::count(env.begin(), env.end(), "GITHUB_TOKEN=s3cr3t-value"), 1);
  EXPECT_EQ(std::count_if(env.begin(), env.end(),
                          [](const std::string& e) { return e.starts_with("UMP_TOKEN="); }),
            1);
  std::string timeline = ground->timeline_text(run);
  EXPECT_NE(timeline.find("secret absent does not exist: the variable OTHER is unset"),
            std::string::npos);
  EXPECT_NE(timeline.find("reserved name"), std::string::npos);
  EXPECT_EQ(timeline.find("s3cr3t"), std::string::npos);
  EXPECT_EQ(ground->run(run).dump().find("s3cr3t"), std::string::npos);
}

TEST_F(DriverTest, artifacts_are_kept_and_links_are_refused_by_name) {
  World world(ground, [&](const agent::Params&) {
    auto listed = ground->engine->list_containers({{engine::kLabelRole, "sandbox"}});
    ground->engine->put_file(listed.at(0).id, "/ump/outputs", {"", 0755, 1000, 1000, true});
    ground->engine->put_file(listed.at(0).id, "/ump/outputs/report/a.txt",
                             {"hello", 0644, 1000, 1000, false});
    return succeed();
  });
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::succeeded));
  auto artifacts = ground->status(run).artifacts;
  ASSERT_EQ(artifacts.size(), 1U) << ground->timeline_text(run);
  EXPECT_EQ(artifacts[0].path, "report/a.txt");
  EXPECT_EQ(artifacts[0].size, 5);
  EXPECT_EQ(ground->store->blob_get(artifacts[0].digest), "hello");
}

TEST_F(DriverTest, cancel_ends_a_running_run) {
  World world(ground, work_until_stopped);
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::running));
  ground->cancel(run);
  ASSERT_TRUE(world.ends(run, Phase::cancelled)) << ground->run(run).dump_pretty();
  EXPECT_EQ(ground->status(run).message, "Cancelled");
  EXPECT_NE(ground->timeline_text(run).find("Cancelled (by person)"), std::string::npos);
  expect_nothing_left();
}

TEST_F(DriverTest, cancel_while_its_sandbox_is_being_made_ends_it_too) {
  std::atomic<bool> hold{true}, reached{false};
  ground->engine->before_each([&](const std::string& call) {
    if (call != "start_container") return;
    reached = true;
    while (hold) std::this_thread::yield();
  });
  World world(ground, [](const agent::Params&) { return succeed("must not run"); });
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(eventually([&] { return reached.load(); }));
  ground->cancel(run);
  ASSERT_TRUE(world.passes([&] {
    auto preview = world.controllers->preview("runs", "default", run);
    return preview.dump().find("cancelled") != std::string::npos;
  }));
  ASSERT_TRUE(eventually([&] { return ground->engine->count_calls("start_container") >= 1; }));
  std::this_thread::yield();
  hold = false;
  ASSERT_TRUE(world.passes([&] { return apis::terminal(ground->status(run).phase); }));
  // Cancelled, or it was through in the moment between: never anything else.
  EXPECT_TRUE(ground->status(run).phase == Phase::cancelled ||
              ground->status(run).phase == Phase::succeeded);
  expect_nothing_left();
}

TEST_F(DriverTest, a_run_cancelled_in_the_queue_never_starts) {
  World world(ground, work_until_stopped, 1);
  ground->create_job("first");
  ground->create_job("second");
  world.start();
  std::string first = world.start_run("first");
  ASSERT_TRUE(world.ends(first, Phase::running));
  std::string second = world.start_run("second");
  ground->cancel(second);
  ASSERT_TRUE(world.ends(second, Phase::cancelled));
  EXPECT_EQ(ground->status(second).message, "Cancelled before it started");
  EXPECT_TRUE(world.passes([&] {
    return ground->timeline_text(second).find("Cancelled before it started (by person)") !=
           std::string::npos;
  }));
  EXPECT_EQ(ground->sandboxes(), 1U);
}

TEST_F(DriverTest, the_time_limit_ends_it_with_the_words_people_know) {
  World world(ground, work_until_stopped);
  ground->create_job("hello", R"({"limits":{"timeoutSeconds":30}})");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::running));
  ground->clock.advance(Duration(31'000));
  ASSERT_TRUE(world.ends(run, Phase::timed_out));
  EXPECT_EQ(ground->status(run).message, "the run exceeded its time limit");
  expect_nothing_left();
}

TEST_F(DriverTest, a_failure_of_the_agent_is_the_runs) {
  World world(ground, [](const agent::Params&) {
    agent::Result result;
    result.end = agent::Result::End::failed;
    result.message = "the run exceeded its limit of 60 turns";
    result.turns = 60;
    return result;
  });
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::failed));
  EXPECT_EQ(ground->status(run).message, "the run exceeded its limit of 60 turns");
  EXPECT_EQ(ground->status(run).turns, 60);
  expect_nothing_left();
}

TEST_F(DriverTest, what_ump_fail_reported_fails_the_run_whatever_the_agent_says) {
  World world(ground, [](const agent::Params& params) {
    params.run.set_failure("the data is bad");
    return succeed("all went well");
  });
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::failed)) << ground->run(run).dump_pretty();
  EXPECT_EQ(ground->status(run).reason, "ReportedFailure");
  EXPECT_EQ(ground->status(run).message, "the data is bad");
  EXPECT_NE(ground->timeline_text(run).find("the job reported a failure: the data is bad"),
            std::string::npos);
}

TEST_F(DriverTest, the_sandbox_is_gone_when_its_container_its_network_or_the_broker_goes) {
  World world(ground, work_until_stopped);
  ground->create_job("hello", R"({"schedule":{"overlapPolicy":"Parallel"}})");
  world.start();
  std::vector<std::function<void(const engine::Container&)>> ways{
      [&](const engine::Container& c) { ground->engine->kill_container(c.id); },
      [&](const engine::Container& c) { ground->engine->remove_container(c.id); },
      [&](const engine::Container& c) {
        ground->engine->remove_network(c.networks.begin()->first);
      },
      [&](const engine::Container& c) {
        ground->engine->disconnect_network(c.networks.begin()->first, ground->relay);
      },
      [&](const engine::Container& c) {
        ground->engine->disconnect_network(c.networks.begin()->first, c.id);
      }};
  for (size_t i = 0; i < ways.size(); ++i) {
    std::string run = world.start_run("hello");
    ASSERT_TRUE(world.ends(run, Phase::running));
    auto listed = ground->engine->list_containers({{engine::kLabelRole, "sandbox"}});
    ASSERT_EQ(listed.size(), 1U);
    auto from = std::chrono::steady_clock::now();
    ways[i](listed[0]);
    ASSERT_TRUE(world.ends(run, Phase::failed)) << "way " << i;
    EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(2)) << "way " << i;
    EXPECT_EQ(ground->status(run).message, "sandbox is gone") << "way " << i;
    expect_nothing_left();
  }
}

// The kernel kills all of a container at once; the engine says so a moment later.
TEST_F(DriverTest, a_command_that_dies_with_its_sandbox_is_no_ordinary_failure) {
  std::atomic<int> looks{0};
  ground->engine->on_exec(support::argv_has("work"), [](support::FakeProcess&) { return 137; });
  ground->engine->on_exec(support::argv_is({"/usr/local/bin/ump", "version"}),
                          [&](support::FakeProcess& p) {
                            if (++looks == 3) ground->engine->kill_container(p.container());
                            return 126;
                          });
  World world(ground, [](const agent::Params& params) {
    runs::ExecRequest request;
    request.argv = {"work"};
    params.sandbox.exec(request, params.run.stop().get_token());
    return succeed("it went on in a dead sandbox");
  });
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::failed)) << ground->run(run).dump_pretty();
  EXPECT_EQ(ground->status(run).reason, "SandboxGone");
  EXPECT_NE(ground->status(run).message.find("sandbox is gone"), std::string::npos);
  EXPECT_EQ(looks, 3);
  expect_nothing_left();
}

TEST_F(DriverTest, a_command_that_killed_itself_is_an_ordinary_failure) {
  ground->engine->on_exec(support::argv_has("work"), [](support::FakeProcess&) { return 137; });
  World world(ground, [](const agent::Params& params) {
    runs::ExecRequest request;
    request.argv = {"work"};
    auto outcome = params.sandbox.exec(request, params.run.stop().get_token());
    EXPECT_EQ(outcome.exit_code, 137);
    EXPECT_FALSE(outcome.oom);
    return succeed();
  });
  ground->create_job("hello");
  world.start();
  EXPECT_TRUE(world.ends(world.start_run("hello"), Phase::succeeded));
}

TEST_F(DriverTest, success_in_a_sandbox_that_was_removed_meanwhile_is_none) {
  World world(ground, [&](const agent::Params&) {
    auto listed = ground->engine->list_containers({{engine::kLabelRole, "sandbox"}});
    ground->engine->remove_container(listed.at(0).id);
    return succeed("nothing of it is left");
  });
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::failed)) << ground->run(run).dump_pretty();
  EXPECT_EQ(ground->status(run).message, "sandbox is gone");
  expect_nothing_left();
}

// Without a way to the host, which is what this ground has.
TEST_F(DriverTest, without_a_firewall_internet_runs_and_says_so_unless_it_is_required) {
  World world(ground, [&](const agent::Params&) {
    auto listed = ground->engine->list_containers({{engine::kLabelRole, "sandbox"}});
    EXPECT_EQ(ground->engine->spec_of(listed.at(0).id)->networks.size(), 2U);
    return succeed();
  });
  ground->create_job("open", R"({"network":{"mode":"Internet"}})");
  world.start();
  std::string run = world.start_run("open");
  ASSERT_TRUE(world.ends(run, Phase::succeeded)) << ground->run(run).dump_pretty();
  EXPECT_NE(ground->timeline_text(run).find("the egress firewall is not enforced: "),
            std::string::npos);

  auto set_filter = [&](const char* filter) {
    ground->patch("sandboxengines", "default", [&](json::Value& engine) {
      engine["spec"].set("egressFilter", filter);
      engine["metadata"].set("generation", apis::generation_of(engine) + 1);
    });
    ASSERT_TRUE(world.passes([&] {
      json::Value engine = ground->get("sandboxengines", "", "default");
      return engine.get("status").get_int("observedGeneration") == apis::generation_of(engine);
    }));
  };
  auto condition_reason = [&] {
    auto condition =
        apis::find_condition(ground->get("sandboxengines", "", "default"), "EgressFirewall");
    return condition ? condition->status + " " + condition->reason : "";
  };
  // The engine's controller says it on its own time; the run did not wait for that.
  EXPECT_TRUE(world.passes([&] { return condition_reason() == "False NotEnforced"; }))
      << condition_reason();
  set_filter("required");
  run = world.start_run("open");
  ASSERT_TRUE(world.ends(run, Phase::failed));
  EXPECT_NE(ground->status(run).message.find("the egress firewall is required but not installed: "),
            std::string::npos);
  set_filter("off");
  run = world.start_run("open");
  ASSERT_TRUE(world.ends(run, Phase::succeeded)) << ground->run(run).dump_pretty();
  EXPECT_EQ(ground->timeline_text(run).find("not enforced"), std::string::npos);
  EXPECT_TRUE(world.passes([&] { return condition_reason() == "False TurnedOff"; }))
      << condition_reason();
  expect_nothing_left();
}

TEST_F(DriverTest, the_daily_spend_limit_stops_runs_before_they_cost_anything) {
  World world(ground, [](const agent::Params& params) {
    params.run.budget().charge(3'000'000, 1, 1);
    return succeed();
  });
  ground->patch("workspaces", "default", [](json::Value& workspace) {
    workspace["spec"]["limits"].set("dailySpendUSD", 5);
  });
  ground->create_job("hello");
  world.start();
  for (int i = 0; i < 2; ++i) {
    std::string run = world.start_run("hello");
    ASSERT_TRUE(world.ends(run, Phase::succeeded)) << ground->run(run).dump_pretty();
  }
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::failed));
  EXPECT_EQ(ground->status(run).message, "The workspace reached its daily spend limit of $5.00");
  ground->clock.advance(std::chrono::hours(24));
  run = world.start_run("hello");
  EXPECT_TRUE(world.ends(run, Phase::succeeded)) << "a new day";
}

TEST_F(DriverTest, what_is_missing_is_said_in_the_runs_message) {
  World world(ground, [](const agent::Params&) { return succeed(); });
  ground->create_job("no-model", R"({"model":{}})");
  ground->create_job("no-provider", R"({"model":{"provider":"nobody","name":"m"}})");
  ground->create_job("no-image", R"({"sandbox":{"image":"nowhere"}})");
  ground->create_job("no-engine", R"({"sandbox":{"engine":"other"}})");
  ground->create_job("dockerfile", R"({"sandbox":{"dockerfile":"FROM x"}})");
  world.start();
  auto message = [&](const std::string& job) {
    std::string run = world.start_run(job);
    EXPECT_TRUE(world.ends(run, Phase::failed)) << ground->run(run).dump_pretty();
    return ground->status(run).message;
  };
  EXPECT_EQ(message("no-model"),
            "No model is configured. Set spec.model of the job or spec.defaults.model of its "
            "Workspace.");
  EXPECT_EQ(message("no-provider"), "model provider nobody does not exist");
  EXPECT_TRUE(message("no-image").starts_with("Failed to create the sandbox: "));
  EXPECT_EQ(message("no-engine"), "sandbox engine other does not exist");
  EXPECT_NE(message("dockerfile").find("spec.sandbox.image"), std::string::npos);
  expect_nothing_left();
}

TEST_F(DriverTest, a_root_job_gets_the_default_capabilities_without_raw_sockets) {
  engine::ContainerSpec spec;
  World world(ground, [&](const agent::Params& params) {
    auto listed = ground->engine->list_containers({{engine::kLabelRole, "sandbox"}});
    spec = ground->engine->spec_of(listed.at(0).id).value();
    runs::ExecRequest request;
    request.argv = {"true"};
    params.sandbox.exec(request, {});
    EXPECT_EQ(ground->engine->execs().back().user, "0:0");
    return succeed();
  });
  ground->create_job("root", R"({"sandbox":{"runAsRoot":true}})");
  world.start();
  ASSERT_TRUE(world.ends(world.start_run("root"), Phase::succeeded));
  EXPECT_EQ(spec.cap_drop, std::vector<std::string>{"ALL"});
  EXPECT_GT(std::count(spec.cap_add.begin(), spec.cap_add.end(), "CHOWN"), 0);
  EXPECT_EQ(std::count(spec.cap_add.begin(), spec.cap_add.end(), "NET_RAW"), 0);
  EXPECT_EQ(std::count(spec.cap_add.begin(), spec.cap_add.end(), "NET_ADMIN"), 0);
  EXPECT_TRUE(spec.no_new_privileges);
}

TEST_F(DriverTest, stopping_umpd_fails_its_runs_as_interrupted_and_removes_their_sandboxes) {
  auto world = std::make_unique<World>(ground, work_until_stopped);
  ground->create_job("hello", R"({"schedule":{"overlapPolicy":"Parallel"}})");
  world->start();
  std::string one = world->start_run("hello");
  std::string two = world->start_run("hello");
  ASSERT_TRUE(world->ends(one, Phase::running));
  ASSERT_TRUE(world->ends(two, Phase::running));
  EXPECT_TRUE(world->controllers->stop(Duration(10'000)));
  for (const auto& run : {one, two}) {
    EXPECT_EQ(ground->status(run).phase, Phase::failed);
    EXPECT_EQ(ground->status(run).message,
              "interrupted: umpd stopped while this run was executing");
  }
  expect_nothing_left();
}

TEST_F(DriverTest, a_stop_gives_up_the_command_at_work_and_starts_no_other) {
  ground->engine->on_exec(support::argv_has("long"), [](support::FakeProcess& p) {
    p.wait_until_killed();
    return 137;
  });
  std::atomic<bool> returned{false};
  World world(ground, [&](const agent::Params& params) {
    runs::ExecRequest request;
    request.argv = {"long"};
    params.sandbox.exec(request, params.run.stop().get_token());
    returned = true;
    params.sandbox.exec(request, params.run.stop().get_token());
    agent::Result result;
    result.end = agent::Result::End::stopped;
    return result;
  });
  auto longs = [&] {
    return std::ranges::count_if(ground->engine->execs(), [](const engine::ExecSpec& spec) {
      return spec.argv.back() == "long";
    });
  };
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.passes([&] { return longs() == 1; }));
  EXPECT_TRUE(world.controllers->stop(Duration(10'000)));
  EXPECT_TRUE(returned);
  EXPECT_EQ(longs(), 1);
  EXPECT_EQ(ground->status(run).message, "interrupted: umpd stopped while this run was executing");
  expect_nothing_left();
}

TEST_F(DriverTest, removing_a_runs_record_ends_it_and_takes_its_timeline_along) {
  World world(ground, work_until_stopped);
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::running));
  std::string uid = apis::uid_of(ground->run(run));
  ground->remove("runs", run);
  EXPECT_TRUE(world.passes([&] {
    return ground->sandboxes() == 0 && ground->run_networks() == 0 &&
           ground->store->timeline_read(uid, 0, 10).empty();
  }));
}

}  // namespace
}  // namespace umpteenth::controllers
