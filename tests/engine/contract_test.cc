#include "tests/engine/contract.h"

#include "tests/support/fake_engine.h"

namespace umpteenth::engine {
namespace {

// The few commands of the contract, as functions.
void script(support::FakeEngine& fake) {
  fake.on_exec(support::argv_has("echo out; echo err >&2; exit 3"), [](support::FakeProcess& p) {
    p.out("out\n");
    p.err("err\n");
    return 3;
  });
  fake.on_exec(support::argv_has("$GREETING"), [](support::FakeProcess& p) {
    p.out(p.read_all_stdin());
    const auto& s = p.spec();
    p.out(s.env.at(0).substr(s.env.at(0).find('=') + 1) + " " + s.user.substr(0, 4) + " " +
          s.working_dir + "\n");
    return 0;
  });
  fake.on_exec(support::argv_is({"sleep", "60"}),
               [](support::FakeProcess& p) { return p.wait_until_killed() ? 0 : 137; });
}

EngineUnderTest fake_engine() {
  static const auto kFake = [] {
    auto fake = std::make_unique<support::FakeEngine>();
    fake->add_image(kTestImage);
    script(*fake);
    return fake;
  }();
  return {kFake.get(), ""};
}

INSTANTIATE_TEST_SUITE_P(Fake, Contract, ::testing::Values(fake_engine),
                         [](const auto&) { return "engine"; });

TEST(FakeEngine, down_fails_calls_and_running_execs_and_comes_back) {
  support::FakeEngine fake;
  fake.add_image("bb");
  ContainerSpec s;
  s.name = "one";
  s.image = "bb";
  const std::string id = fake.create_container(s);
  fake.start_container(id);
  fake.on_exec(support::argv_has("sleep"), [](support::FakeProcess& p) {
    p.wait_until_killed();
    return 0;
  });
  const auto exec = fake.exec(id, {{"sleep"}, {}, "", "", false}, {});
  fake.set_down(true);
  EXPECT_THROW(fake.list_containers({}), Error);
  try {
    exec->wait(Duration{1'000});
    FAIL() << "the exec went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::unavailable);
  }
  fake.set_down(false);
  EXPECT_EQ(fake.find_container(id)->state, "running");
}

TEST(FakeEngine, one_call_fails_and_calls_are_recorded) {
  support::FakeEngine fake;
  fake.fail_next("create_network", Error(Code::internal, "no"));
  NetworkSpec n;
  n.name = "run";
  EXPECT_THROW(fake.create_network(n), Error);
  fake.create_network(n);
  EXPECT_EQ(fake.count_calls("create_network"), 2U);
  EXPECT_EQ(fake.calls().front(), "create_network run");
}

TEST(FakeEngine, commands_are_killed_by_match) {
  support::FakeEngine fake;
  fake.add_image("bb");
  ContainerSpec s;
  s.name = "one";
  s.image = "bb";
  const std::string id = fake.create_container(s);
  fake.start_container(id);
  fake.on_exec(support::argv_has("long"), [](support::FakeProcess& p) {
    p.write_file("/workspace/began", "yes");
    p.wait_until_killed();
    return 0;
  });
  const auto exec = fake.exec(id, {{"long"}, {}, "", "", false}, {});
  fake.kill_commands(support::argv_has("long"), 143);
  EXPECT_EQ(exec->wait(Duration{5'000}), 143);
  EXPECT_EQ(fake.files_of("one").at("/workspace/began").data, "yes");
}

}  // namespace
}  // namespace umpteenth::engine
