// What a second umpd makes of a first one that ended anywhere; and an engine that goes and comes.
#include <gtest/gtest.h>

#include "apis/object.h"
#include "base/error.h"
#include "tests/controllers/world.h"

namespace umpteenth::controllers {
namespace {

using apis::Phase;

constexpr char kInterrupted[] = "interrupted: umpd stopped while this run was executing";

struct RestartTest : ::testing::Test {
  std::shared_ptr<Ground> ground = std::make_shared<Ground>();
};

// The first umpd is frozen before its n-th call of the engine for the run, for every n, as if it
// had been killed there; a second one starts over what it left.
TEST_F(RestartTest, a_crash_between_any_two_steps_ends_as_interrupted_and_leaves_nothing_behind) {
  const std::vector<std::string> steps{"find_image",       "create_network",  "connect_network",
                                       "create_container", "start_container", "exec"};
  ground->create_job("hello", R"({"schedule":{"overlapPolicy":"Parallel"}})");
  for (const auto& step : steps) {
    std::atomic<bool> frozen{false}, dead{false}, armed{true};
    ground->engine->before_each([&](const std::string& call) {
      if (call != step || !armed.exchange(false)) return;
      frozen = true;
      while (!dead) std::this_thread::yield();
      throw Error(Code::internal, "the process is dead");
    });
    auto agents = std::make_shared<std::atomic<int>>(0);
    auto agent = [agents](const agent::Params&) {
      ++*agents;
      return succeed();
    };
    auto first = std::make_unique<World>(ground, agent);
    first->start();
    std::string run = first->start_run("hello");
    ASSERT_TRUE(first->passes([&] { return frozen.load(); })) << step;
    auto second = std::make_unique<World>(ground, agent);
    second->start();
    ASSERT_TRUE(second->ends(run, Phase::failed)) << step;
    EXPECT_EQ(ground->status(run).message, kInterrupted) << step;
    EXPECT_TRUE(second->passes([&] {
      return ground->sandboxes() == 0 && ground->run_networks() == 0;
    })) << step;
    EXPECT_EQ(*agents, 0) << step;
    dead = true;
    first.reset();
    EXPECT_EQ(ground->status(run).message, kInterrupted) << "no phase is gone back to: " << step;
    second.reset();
    ground->engine->before_each({});
    EXPECT_EQ(ground->sandboxes(), 0U) << step;
    EXPECT_EQ(ground->run_networks(), 0U) << step;
  }
}

TEST_F(RestartTest, a_run_found_running_is_failed_and_never_executed_again) {
  ground->create_job("hello");
  std::atomic<int> agents{0};
  std::string run;
  {
    World world(ground, work_until_stopped);
    world.start();
    run = world.start_run("hello");
    ASSERT_TRUE(world.ends(run, Phase::running));
    world.controllers->stop(Duration(10'000));
  }
  // As if it had been killed: the row says Running, the sandbox is there.
  ground->patch("runs", run, [](json::Value& object) { object["status"].set("phase", "Running"); });
  engine::ContainerSpec spec;
  spec.name = "left";
  spec.image = "busybox";
  spec.labels = {{engine::kLabelInstance, kInstance},
                 {engine::kLabelRole, "sandbox"},
                 {engine::kLabelRun, apis::uid_of(ground->run(run))}};
  ground->engine->start_container(ground->engine->create_container(spec));
  spec.name = "others";
  spec.labels[engine::kLabelInstance] = "another instance";
  ground->engine->start_container(ground->engine->create_container(spec));
  spec.name = "unlabelled";
  spec.labels.clear();
  ground->engine->start_container(ground->engine->create_container(spec));

  World world(ground, [&](const agent::Params&) {
    ++agents;
    return succeed();
  });
  world.start();
  ASSERT_TRUE(world.ends(run, Phase::failed));
  EXPECT_EQ(ground->status(run).message, kInterrupted);
  EXPECT_TRUE(world.passes([&] { return !ground->engine->find_container("left"); }));
  EXPECT_TRUE(ground->engine->find_container("others")) << "nothing that is not ours is touched";
  EXPECT_TRUE(ground->engine->find_container("unlabelled"));
  EXPECT_TRUE(ground->engine->find_container(ground->relay));
  EXPECT_EQ(agents, 0);
}

TEST_F(RestartTest, queued_runs_go_on_after_a_restart) {
  ground->create_job("hello");
  std::string run;
  {
    World world(
        ground, [](const agent::Params&) { return succeed(); }, 0);
    world.start();
    run = world.start_run("hello");
  }
  EXPECT_EQ(ground->status(run).phase, Phase::queued);
  World world(ground, [](const agent::Params&) { return succeed(); });
  world.start();
  EXPECT_TRUE(world.ends(run, Phase::succeeded));
}

TEST_F(RestartTest, two_umpds_never_execute_one_run_twice) {
  ground->create_job("hello", R"({"schedule":{"overlapPolicy":"Parallel"}})");
  std::atomic<int> agents{0};
  auto agent = [&](const agent::Params&) {
    ++agents;
    return succeed();
  };
  World holder(ground, agent, 0);
  holder.start();
  std::vector<std::string> runs;
  for (int i = 0; i < 5; ++i) runs.push_back(holder.start_run("hello"));
  World one(ground, agent, 10);
  World two(ground, agent, 10);
  std::thread other([&] { two.start(); });
  one.start();
  other.join();
  for (const auto& run : runs) {
    ASSERT_TRUE(one.passes([&] { return apis::terminal(ground->status(run).phase); }));
  }
  EXPECT_LE(agents, 5);
}

TEST_F(RestartTest, an_engine_that_is_down_before_the_run_is_waited_for) {
  World world(ground, [](const agent::Params&) { return succeed(); });
  ground->create_job("hello");
  world.start();
  ASSERT_TRUE(world.passes(
      [&] { return ground->get("sandboxengines", "", "default").get("status").is_object(); }));
  ground->engine->set_down(true);
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.passes(
      [&] { return ground->timeline_text(run).find("does not answer") != std::string::npos; }));
  EXPECT_EQ(ground->status(run).phase, Phase::provisioning);
  const std::string told = ground->timeline_text(run);
  EXPECT_NE(told.find("waiting for it: cannot reach the container engine"), std::string::npos)
      << told;
  ground->engine->set_down(false);
  EXPECT_TRUE(world.ends(run, Phase::succeeded)) << ground->run(run).dump_pretty();
  EXPECT_EQ(ground->sandboxes(), 0U);
}

TEST_F(RestartTest, an_engine_that_goes_down_while_the_sandbox_is_made_is_waited_for) {
  for (const std::string step : {"create_network", "create_container", "start_container"}) {
    ground->engine->forget_calls();
    ground->engine->fail_next(step, Error(Code::unavailable, "connection refused"));
    World world(ground, [](const agent::Params&) { return succeed(); });
    if (step == "create_network") ground->create_job("hello");
    world.start();
    std::string run = world.start_run("hello");
    ASSERT_TRUE(world.ends(run, Phase::succeeded)) << step << ground->run(run).dump_pretty();
    EXPECT_EQ(ground->engine->count_calls("start_container"), step == "start_container" ? 2U : 1U);
    EXPECT_EQ(ground->sandboxes(), 0U) << step;
    EXPECT_EQ(ground->run_networks(), 0U) << step;
  }
}

TEST_F(RestartTest, an_engine_that_goes_down_in_a_command_is_not_a_dead_run) {
  ground->engine->on_exec(support::argv_has("long"), [](support::FakeProcess& p) {
    p.wait_until_killed();
    return 137;
  });
  std::atomic<bool> began{false};
  runs::ExecOutcome outcome;
  World world(ground, [&](const agent::Params& params) {
    runs::ExecRequest request;
    request.argv = {"long"};
    began = true;
    outcome = params.sandbox.exec(request, params.run.stop().get_token());
    return succeed();
  });
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.passes([&] {
    return began && !ground->engine->execs().empty() &&
           ground->engine->execs().back().argv.back() == "long";
  }));
  ground->engine->set_down(true);
  ASSERT_TRUE(eventually([&] { return ground->clock.sleepers() >= 1; }));
  EXPECT_EQ(ground->status(run).phase, Phase::running);
  ground->engine->set_down(false);
  ASSERT_TRUE(world.ends(run, Phase::succeeded)) << ground->run(run).dump_pretty();
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.output.find("connection to the container engine broke"), std::string::npos);
}

TEST_F(RestartTest, a_sandbox_that_cannot_be_removed_now_is_swept_when_the_engine_is_back) {
  World world(ground, [&](const agent::Params&) {
    ground->engine->fail_next("remove_container", Error(Code::internal, "device busy"));
    return succeed();
  });
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::succeeded));
  EXPECT_TRUE(world.passes([&] {
    ground->clock.advance(Duration(60'000));
    return ground->sandboxes() == 0 && ground->run_networks() == 0;
  }));
}

}  // namespace
}  // namespace umpteenth::controllers
