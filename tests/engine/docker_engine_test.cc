// What the contract does not say: troubles of a real engine.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/subprocess.h"
#include "engine/docker.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/paths.h"

namespace umpteenth::engine {
namespace {

class DockerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    test_ = support::test_engine();
    if (!test_.skip.empty()) GTEST_SKIP() << test_.skip;
    engine_ = make_docker_engine({.endpoint = test_.endpoint});
  }
  void TearDown() override {
    if (!engine_) return;
    for (const Container& c : engine_->list_containers(mine_)) engine_->remove_container(c.id);
    for (const Network& n : engine_->list_networks(mine_)) engine_->remove_network(n.id);
  }

  std::string running(const std::string& name) {
    ContainerSpec s;
    s.name = prefix_ + name;
    s.image = "umpteenth-busybox:latest";
    s.entrypoint = {"sleep", "600"};
    s.labels = mine_;
    s.network_mode = "none";
    const std::string id = engine_->create_container(s);
    engine_->start_container(id);
    return id;
  }
  int engine_sh(const std::string& verb) {
    Command c;
    c.argv = {support::source_dir() + "/tests/support/engine.sh", verb, test_.dir.string()};
    c.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
    c.timeout = Duration{120'000};
    return system_runner().run(c).exit_code;
  }
  template <typename F>
  std::string failure(F call) {
    try {
      call();
    } catch (const Error& e) {
      return std::to_string(http_status(e.code())) + " " + e.message();
    }
    return "none";
  }

  support::TestEngine test_;
  std::unique_ptr<Engine> engine_;
  const std::string prefix_ = "dt-" + std::to_string(getpid()) + "-";
  const Labels mine_ = {{"umpteenth.test", prefix_}};
};

// hashicorp/nomad#1859: an engine that is away is not a dead container.
TEST_F(DockerTest, an_engine_that_goes_away_and_comes_back_has_not_ended_the_container) {
  if (test_.dir.empty()) GTEST_SKIP() << "the engine is not ours to stop";
  const std::string id = running("outage");
  const auto exec = engine_->exec(id, {{"sleep", "300"}, {}, "", "", false}, {});
  ASSERT_EQ(engine_sh("stop"), 0);
  EXPECT_TRUE(failure([&] {
                engine_->list_containers(mine_);
              }).starts_with("503 cannot reach the container engine at unix:///"));
  EXPECT_TRUE(failure([&] { exec->wait(Duration{10'000}); }).starts_with("503 "));
  EXPECT_TRUE(
      failure([&] { engine_->events({}, [](const EngineEvent&) {}, {}); }).starts_with("503"));
  ASSERT_EQ(engine_sh("up"), 0);
  EXPECT_EQ(engine_->find_container(id)->state, "running");  // the same Engine object
  EXPECT_EQ(engine_->exec(id, {{"true"}, {}, "", "", false}, {})->wait(Duration{20'000}), 0);
}

TEST_F(DockerTest, a_missing_program_is_an_exit_code_and_unread_input_no_error) {
  const std::string id = running("odd");
  const auto missing = engine_->exec(id, {{"/no/such/program"}, {}, "", "", false}, {});
  const auto code = missing->wait(Duration{20'000});
  ASSERT_TRUE(code);
  EXPECT_TRUE(*code == 126 || *code == 127) << *code;

  const auto unread = engine_->exec(id, {{"true"}, {}, "", "", true}, {});
  const std::string chunk(1 << 20, 'x');
  for (int i = 0; i < 16; ++i) unread->write_stdin(chunk);
  unread->close_stdin();
  EXPECT_EQ(unread->wait(Duration{20'000}), 0);
}

TEST_F(DockerTest, a_command_that_prints_forever_can_be_left_and_many_may_remove_its_container) {
  const std::string id = running("flood");
  std::atomic<uint64_t> bytes = 0;
  const auto began = std::chrono::steady_clock::now();
  {
    const auto exec = engine_->exec(id, {{"yes"}, {}, "", "", false},
                                    [&](Output, std::string_view b) { bytes += b.size(); });
    const auto deadline = began + std::chrono::seconds(30);
    while (bytes < 5'000'000 && std::chrono::steady_clock::now() < deadline)
      EXPECT_EQ(exec->wait(Duration{20}), std::nullopt);
    EXPECT_GE(bytes, 5'000'000U);
  }
  const uint64_t at_end = bytes;

  // moby#22312: a removal that is under way already is not an error.
  std::mutex mutex;
  std::vector<std::string> failures;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
      threads.emplace_back([&] {
        const std::string f = failure([&] { engine_->remove_container(id); });
        const std::scoped_lock lock(mutex);
        if (f != "none") failures.push_back(f);
      });
  }
  EXPECT_EQ(failures, std::vector<std::string>{});
  EXPECT_FALSE(engine_->find_container(id));
  EXPECT_EQ(bytes, at_end);  // nothing comes once the exec is gone
}

TEST_F(DockerTest, what_the_engine_refuses_is_told_by_its_text) {
  ContainerSpec s;
  s.name = prefix_ + "bad name!";
  s.image = "umpteenth-busybox:latest";
  s.entrypoint = {"sleep", "600"};
  const std::string text = failure([&] { engine_->create_container(s); });
  EXPECT_TRUE(text.starts_with("422 create container \"")) << text;
  EXPECT_NE(text.find("Invalid container name"), std::string::npos) << text;

  s.name = prefix_ + "net";
  s.networks = {{"no-such-network", "", {}}};
  s.labels = mine_;
  const std::string missing = failure([&] {
    const std::string id = engine_->create_container(s);
    engine_->start_container(id);
  });
  EXPECT_TRUE(missing.starts_with("404 ")) << missing;
}

}  // namespace
}  // namespace umpteenth::engine
