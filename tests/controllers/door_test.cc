// Runs whose sandbox the broker listens in: no network, one door, shut when the sandbox ends.
#include <gtest/gtest.h>

#include <algorithm>

#include "apis/object.h"
#include "base/error.h"
#include "tests/controllers/world.h"

namespace umpteenth::controllers {
namespace {

using apis::Phase;

struct DoorTest : ::testing::Test {
  std::shared_ptr<Ground> ground = std::make_shared<Ground>();

  DoorTest() { ground->doors->obstacle = ""; }

  engine::Container sandbox() const {
    return ground->engine->list_containers({{engine::kLabelRole, "sandbox"}}).at(0);
  }
  void want_attachment(const char* how) {
    ground->patch("sandboxengines", "default",
                  [&](json::Value& engine) { engine["spec"].set("attachment", how); });
  }
};

TEST_F(DoorTest, a_sandbox_has_no_network_and_its_token_is_good_at_its_door_alone) {
  engine::ContainerSpec spec;
  std::string token, uid;
  size_t execs_before_the_door = 1;
  ground->doors->on_open = [&](const std::string&) {
    execs_before_the_door = ground->engine->count_calls("exec");
  };
  World* in = nullptr;
  World world(ground, [&](const agent::Params& params) {
    spec = ground->engine->spec_of(sandbox().id).value();
    uid = params.run.info().uid;
    runs::ExecRequest request;
    request.argv = {"true"};
    params.sandbox.exec(request, {});
    const std::vector<std::string> env = ground->engine->execs().back().env;
    for (const std::string& variable : env)
      if (variable.starts_with("UMP_TOKEN=")) token = variable.substr(10);
    EXPECT_TRUE(in->registry.find(token, "netns:" + uid));
    EXPECT_FALSE(in->registry.find(token, "netns:another"));
    EXPECT_FALSE(in->registry.find(token, "127.0.0.1"));
    EXPECT_EQ(ground->doors->open(), 1U);
    return succeed();
  });
  in = &world;
  ground->create_job("hello");
  world.start();
  const std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::succeeded)) << ground->run(run).dump_pretty();
  EXPECT_EQ(spec.network_mode, "none");
  EXPECT_TRUE(spec.networks.empty());
  EXPECT_EQ(spec.extra_hosts, std::vector<std::string>{"umpteenth:127.0.0.1"});
  EXPECT_EQ(spec.dns, std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(execs_before_the_door, 0U) << "something ran before the address was taken";
  EXPECT_EQ(ground->status(run).sandbox.endpoint, "netns:" + uid);
  EXPECT_EQ(ground->engine->count_calls("create_network"), 0U);
  EXPECT_EQ(ground->doors->open(), 0U);
  EXPECT_EQ(ground->sandboxes(), 0U);
}

TEST_F(DoorTest, a_sandbox_whose_first_process_ends_is_gone_and_its_door_shut) {
  std::atomic<size_t> open_at_the_stop{9};
  std::atomic<bool> at_work{false};
  World world(ground, [&](const agent::Params& params) {
    at_work = true;
    auto result = work_until_stopped(params);
    open_at_the_stop = ground->doors->open();
    return result;
  });
  ground->create_job("hello");
  world.start();
  const std::string run = world.start_run("hello");
  ASSERT_TRUE(world.passes([&] { return at_work.load(); }));
  ground->doors->end_process(sandbox().id);
  ASSERT_TRUE(world.ends(run, Phase::failed));
  EXPECT_EQ(ground->status(run).message, "sandbox is gone");
  EXPECT_EQ(ground->status(run).reason, "SandboxGone");
  EXPECT_EQ(open_at_the_stop, 0U) << "the listener outlived the sandbox";
  EXPECT_EQ(ground->sandboxes(), 0U);
}

TEST_F(DoorTest, an_address_that_somebody_else_has_fails_the_run_and_removes_the_sandbox) {
  ground->doors->on_open = [](const std::string&) {
    throw Error(Code::conflict, "listen on 127.0.0.1:8081: Address already in use");
  };
  World world(ground, [](const agent::Params&) { return succeed("must not run"); });
  ground->create_job("hello");
  world.start();
  const std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::failed));
  EXPECT_EQ(ground->status(run).message,
            "Failed to create the sandbox: listen on 127.0.0.1:8081: Address already in use");
  EXPECT_EQ(ground->engine->count_calls("exec"), 0U);
  EXPECT_EQ(ground->sandboxes(), 0U);
}

TEST_F(DoorTest, internet_adds_the_shared_bridge_and_no_network_of_its_own) {
  ground->patch("sandboxengines", "default",
                [](json::Value& engine) { engine["spec"].set("egressFilter", "off"); });
  World world(ground, work_until_stopped);
  ground->create_job("open", R"({"network":{"mode":"Internet"}})");
  world.start();
  const std::string run = world.start_run("open");
  ASSERT_TRUE(world.ends(run, Phase::running)) << ground->run(run).dump_pretty();
  EXPECT_EQ(ground->doors->open(), 1U);
  const engine::ContainerSpec spec = ground->engine->spec_of(sandbox().id).value();
  ASSERT_EQ(spec.networks.size(), 1U);
  EXPECT_EQ(spec.networks[0].network, "ump-egress");
  EXPECT_EQ(ground->run_networks(), 0U);
  // The firewall's guard takes it off and puts it back: that is no end of the run.
  ground->engine->disconnect_network("ump-egress", sandbox().id);
  ground->cancel(run);
  ASSERT_TRUE(world.ends(run, Phase::cancelled));
  EXPECT_TRUE(ground->engine->find_network("ump-egress")) << "it is shared: it stays";
}

TEST_F(DoorTest, the_attachment_is_what_is_wanted_and_possible) {
  World world(ground, [](const agent::Params&) { return succeed(); });
  ground->create_job("hello");
  ground->create_job("other", R"({"sandbox":{"runtime":"runsc"}})");
  world.start();
  const auto made_a_network = [&](const std::string& job) {
    ground->engine->forget_calls();
    const std::string run = world.start_run(job);
    EXPECT_TRUE(world.ends(run, Phase::succeeded)) << ground->run(run).dump_pretty();
    return ground->engine->count_calls("create_network") > 0;
  };
  const auto set = [&](const char* how) {
    ground->patch("sandboxengines", "default", [&](json::Value& engine) {
      engine["spec"].set("attachment", how);
      engine["metadata"].set("generation", apis::generation_of(engine) + 1);
    });
    EXPECT_TRUE(world.passes([&] {
      const json::Value engine = ground->get("sandboxengines", "", "default");
      return engine.get("status").get_int("observedGeneration") == apis::generation_of(engine);
    }));
  };
  const auto published = [&] {
    return ground->get("sandboxengines", "", "default").get("status").get_string("attachment");
  };
  set("auto");
  EXPECT_FALSE(made_a_network("hello"));
  EXPECT_EQ(published(), "namespace");
  EXPECT_FALSE(made_a_network("other"));
  EXPECT_TRUE(ground->doors->asked("runsc")) << "the job's runtime decides, not the engine's";
  set("network");
  EXPECT_TRUE(made_a_network("hello"));
  EXPECT_EQ(published(), "network");
  set("namespace");
  EXPECT_FALSE(made_a_network("hello"));
  EXPECT_EQ(published(), "namespace");
}

TEST_F(DoorTest, where_it_is_not_possible_auto_takes_the_network_and_namespace_refuses) {
  ground->doors->obstacle = "the engine is elsewhere";
  World world(ground, [](const agent::Params&) { return succeed(); });
  ground->create_job("hello");
  world.start();
  const auto ready = [&] {
    const auto c = apis::find_condition(ground->get("sandboxengines", "", "default"), "Ready");
    return c ? c->status + " " + c->message : "";
  };
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::succeeded));
  EXPECT_EQ(ground->engine->count_calls("create_network"), 1U);
  ASSERT_TRUE(world.passes([&] { return ready().starts_with("True"); }));
  const auto why =
      apis::find_condition(ground->get("sandboxengines", "", "default"), "NamespaceAttachment");
  ASSERT_TRUE(why);
  EXPECT_EQ(why->status + " " + why->reason + " " + why->message,
            "False NotPossible the engine is elsewhere");

  want_attachment("namespace");
  const std::string refusal =
      "spec.attachment: namespace is not possible: the engine is elsewhere; set it to auto or "
      "network";
  ASSERT_TRUE(world.passes([&] { return ready() == "False " + refusal; })) << ready();
  run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::failed));
  EXPECT_EQ(ground->status(run).message, "sandbox engine default: " + refusal);
  EXPECT_EQ(ground->sandboxes(), 0U);
}

}  // namespace
}  // namespace umpteenth::controllers
