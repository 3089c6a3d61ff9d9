// Whole runs on a real container engine, with the real agent and the Scripted provider.
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/controllers/engine_world.h"

namespace umpteenth::controllers {
namespace {

using apis::Phase;

class DriverEngineTest : public EngineWorld {
 protected:
  void scripted_job(const std::string& name, const std::string& script) {
    provider(script);
    job(name, R"({"model":{"provider":"script","name":"m"}})");
  }
};
ON_BOTH_ATTACHMENTS(DriverEngineTest);

constexpr char kSleeps[] =
    R"([{"call":{"tool":"bash","arguments":{"command":"sleep 300","timeout_seconds":300}}}])";

TEST_P(DriverEngineTest, a_scripted_run_goes_to_its_outputs_and_leaves_nothing_behind) {
  scripted_job("hello", R"([{"call":{"tool":"bash","arguments":{"command":
      "cat /ump/input.json; mkdir -p /ump/outputs/sub; echo hi > /ump/outputs/sub/a.txt; ln -s /etc/passwd /ump/outputs/link; mkfifo /ump/outputs/fifo; id -u"}}},
     {"match":{"tool":"bash","failed":false},"call":{"tool":"finish","arguments":
      {"status":"success","summary":"it said {{result}}","outputs":{"answer":42}}}}])");
  std::string run = start_run("hello", R"({"n":3})");
  ASSERT_TRUE(ends(run, Phase::succeeded))
      << ground_.run(run).dump_pretty() << ground_.timeline_text(run);
  auto status = ground_.status(run);
  EXPECT_NE(status.summary.find("\"n\":3"), std::string::npos) << status.summary;
  EXPECT_NE(status.summary.find("1000"), std::string::npos) << status.summary;
  EXPECT_EQ(status.outputs.get_int("answer"), 42);
  ASSERT_EQ(status.artifacts.size(), 1U) << ground_.timeline_text(run);
  EXPECT_EQ(status.artifacts[0].path, "sub/a.txt");
  EXPECT_EQ(ground_.store->blob_get(status.artifacts[0].digest), "hi\n");
  std::string timeline = ground_.timeline_text(run);
  EXPECT_NE(timeline.find("link: symbolic links are not collected"), std::string::npos);
  EXPECT_NE(timeline.find("fifo: devices, fifos"), std::string::npos);
  EXPECT_EQ(sandboxes().size(), 0U);
  EXPECT_EQ(networks_of_runs(), 0U);
}

TEST_P(DriverEngineTest, a_command_that_hangs_is_killed_with_all_its_children) {
  runs::ExecOutcome hung;
  std::string left;
  start([&](const agent::Params& params) {
    runs::ExecRequest request;
    request.argv = {"sh", "-c", "sleep 997 & sleep 998 & wait"};
    request.timeout = Duration(500);
    hung = params.sandbox.exec(request, params.run.stop().get_token());
    runs::ExecRequest look;
    look.argv = {"sh", "-c", "ps | grep 'sleep 99' | grep -v grep; true"};
    left = params.sandbox.exec(look, params.run.stop().get_token()).output;
    params.sandbox.write_file("/workspace/x/y.txt", "text", 0640, {});
    EXPECT_EQ(params.sandbox.read_file("/workspace/x/y.txt", 100, {}), "text");
    EXPECT_THROW(params.sandbox.read_file("/workspace/x/y.txt", 3, {}), Error);
    EXPECT_THROW(params.sandbox.read_file("/workspace/none", 3, {}), Error);
    EXPECT_THROW(params.sandbox.read_file("/workspace/x", 3, {}), Error);
    return succeed();
  });
  job("hello");
  std::string run = start_run("hello");
  ASSERT_TRUE(ends(run, Phase::succeeded)) << ground_.run(run).dump_pretty();
  EXPECT_TRUE(hung.timed_out);
  EXPECT_EQ(left, "");
}

TEST_P(DriverEngineTest, a_container_that_someone_removes_fails_its_run_within_a_second) {
  scripted_job("hello", kSleeps);
  std::string run = start_run("hello");
  ASSERT_TRUE(runs(run)) << ground_.run(run).dump_pretty();
  client_->remove_container(ground_.status(run).sandbox.container);
  const auto from = std::chrono::steady_clock::now();
  ASSERT_TRUE(ends(run, Phase::failed)) << ground_.run(run).dump_pretty();
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(5))
      << "noticed at once; the rest is the removal of its network on a busy machine";
  EXPECT_NE(ground_.status(run).message.find("sandbox is gone"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return networks_of_runs() == 0; }));
}

TEST_P(DriverEngineTest, stopping_removes_the_sandboxes_within_ten_seconds) {
  scripted_job("hello", kSleeps);
  std::string run = start_run("hello");
  ASSERT_TRUE(runs(run)) << ground_.run(run).dump_pretty();
  EXPECT_TRUE(controllers_->stop(Duration(10'000)));
  EXPECT_EQ(ground_.status(run).message, "interrupted: umpd stopped while this run was executing");
  EXPECT_EQ(sandboxes().size(), 0U);
  EXPECT_EQ(networks_of_runs(), 0U);
}

}  // namespace
}  // namespace umpteenth::controllers
