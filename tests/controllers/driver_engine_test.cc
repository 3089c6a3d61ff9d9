// Whole runs on a real container engine, with the real agent and the Scripted provider.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/agent.h"
#include "apis/object.h"
#include "base/error.h"
#include "base/fd.h"
#include "controllers/controllers.h"
#include "engine/docker.h"
#include "engine/relay.h"
#include "engine/sandbox_images.h"
#include "tests/controllers/world.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/paths.h"

namespace umpteenth::controllers {
namespace {

using apis::Phase;

// Ground's objects, but time is real and so is the engine.
class DriverEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto& test = support::test_engine();
    if (!test.skip.empty()) GTEST_SKIP() << test.skip;
    client_ = engine::make_docker_engine({.endpoint = test.endpoint});
    images_ = std::make_unique<engine::SandboxImages>(
        *client_, instance(),
        std::map<std::string, std::filesystem::path>{
            {client_->info().arch, support::bin_dir() + "/ump"}});
    auto folder = dir_.path() / "broker";
    std::filesystem::create_directory(folder);
    chmod(folder.c_str(), 0755);
    engine::AttachmentOptions options;
    options.instance = instance();
    options.subnet_pool = "10.205.0.0/16";
    options.socket_folder = folder;
    networks_ = std::make_unique<engine::RunNetworks>(*client_, *images_, options);
    start(agent::run_agent);
  }

  void TearDown() override {
    controllers_.reset();
    if (!networks_) return;
    for (const auto& c : client_->list_containers({{engine::kLabelInstance, instance()}}))
      client_->remove_container(c.id);
    for (const auto& n : client_->list_networks({{engine::kLabelInstance, instance()}}))
      client_->remove_network(n.id);
    for (const auto& i : client_->list_images({{engine::kLabelInstance, instance()}}))
      client_->remove_image(i.id);
  }

  static std::string instance() { return "driver-test-" + std::to_string(getpid()); }

  void start(World::Agent agent) {
    Options options;
    options.instance = instance();
    options.run_agent = std::move(agent);
    options.make_engine = [this](const apis::SandboxEngineSpec&) { return parts(); };
    controllers_ = std::make_unique<Controllers>(*ground_.store, system_clock(), registry_, sealer_,
                                                 std::move(options));
    ground_.patch("sandboxengines", "default", [](json::Value& engine) {
      engine["spec"].set("image", "umpteenth-busybox:latest");
    });
    controllers_->start();
  }

  EngineHandle::Parts parts() {
    EngineHandle::Parts parts;
    parts.engine = client_;
    parts.prepare_image = [this](const std::string& image, std::stop_token stop) {
      auto base = images_->ensure_base(image, stop);
      return PreparedImage{images_->ensure_prepared(base.id), base.id};
    };
    parts.create_network = [this](const std::string& uid, const engine::Labels& labels) {
      auto made = networks_->create(uid, labels);
      return RunNetwork{made.id, made.name, made.broker_address, made.sandbox_address};
    };
    parts.remove_network = [this](const std::string& id) { client_->remove_network(id); };
    parts.broker_attached = [this](const RunNetwork& network) {
      auto found = client_->find_network(network.id);
      if (!found) return false;
      return std::ranges::any_of(found->members, [&](const auto& member) {
        return member.second.ipv4 == network.broker_ip;
      });
    };
    return parts;
  }

  std::string start_run(const std::string& job, const std::string& input = "{}") {
    job::StartRequest request;
    request.ns = "default";
    request.job = job;
    request.trigger = "Manual";
    request.actor = "person";
    request.input = json::parse(input);
    return apis::name_of(controllers_->start_run(request));
  }

  bool ends(const std::string& run, Phase phase) {
    return eventually(
               [&] {
                 Phase now = ground_.status(run).phase;
                 return now == phase || apis::terminal(now);
               },
               std::chrono::seconds(90)) &&
           ground_.status(run).phase == phase;
  }

  void provider(const std::string& script) {
    ground_.create(
        "modelproviders", "default", "script",
        R"({"type":"Scripted","models":[{"name":"m","id":"m"}],"script":)" + script + "}");
  }
  void job(const std::string& name, const std::string& more = "{}") {
    json::Value spec = json::parse(more);
    spec.set("model", json::parse(R"({"provider":"script","name":"m"})"));
    ground_.create_job(name, spec.dump());
  }

  size_t ours(const char* role) {
    return client_
        ->list_containers({{engine::kLabelInstance, instance()}, {engine::kLabelRole, role}})
        .size();
  }
  size_t networks_of_runs() {
    return client_
        ->list_networks({{engine::kLabelInstance, instance()}, {engine::kLabelRole, "run-network"}})
        .size();
  }

  TempDir dir_;
  Ground ground_;
  runs::Registry registry_;
  apis::Sealer sealer_{"test", {"0123456789abcdef0123456789abcdef"}};
  std::shared_ptr<engine::Engine> client_;
  std::unique_ptr<engine::SandboxImages> images_;
  std::unique_ptr<engine::RunNetworks> networks_;
  std::unique_ptr<Controllers> controllers_;
};

TEST_F(DriverEngineTest, a_scripted_run_goes_to_its_outputs_and_leaves_nothing_behind) {
  provider(R"([{"call":{"tool":"bash","arguments":{"command":
      "cat /ump/input.json; mkdir -p /ump/outputs/sub; echo hi > /ump/outputs/sub/a.txt; ln -s /etc/passwd /ump/outputs/link; mkfifo /ump/outputs/fifo; id -u"}}},
     {"match":{"tool":"bash","failed":false},"call":{"tool":"finish","arguments":
      {"status":"success","summary":"it said {{result}}","outputs":{"answer":42}}}}])");
  job("hello");
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
  EXPECT_EQ(ours("sandbox"), 0U);
  EXPECT_EQ(networks_of_runs(), 0U);
}

TEST_F(DriverEngineTest, the_hardening_is_what_the_kernel_reports) {
  std::string proc, env;
  controllers_.reset();
  start([&](const agent::Params& params) {
    auto run = [&](std::vector<std::string> argv) {
      runs::ExecRequest request;
      request.argv = std::move(argv);
      return params.sandbox.exec(request, params.run.stop().get_token()).output;
    };
    proc = run({"cat", "/proc/self/status"});
    env = run({"sh", "-c", "tr '\\0' '\\n' < /proc/1/environ; id; cat /etc/hosts"});
    auto sandbox = client_->list_containers(
        {{engine::kLabelInstance, instance()}, {engine::kLabelRole, "sandbox"}});
    EXPECT_EQ(sandbox.size(), 1U);
    return succeed();
  });
  provider("[]");
  job("hello");
  std::string run = start_run("hello");
  ASSERT_TRUE(ends(run, Phase::succeeded)) << ground_.run(run).dump_pretty();
  EXPECT_NE(proc.find("CapEff:\t0000000000000000"), std::string::npos) << proc;
  EXPECT_NE(proc.find("CapBnd:\t0000000000000000"), std::string::npos) << proc;
  EXPECT_NE(proc.find("NoNewPrivs:\t1"), std::string::npos) << proc;
  EXPECT_NE(proc.find("Uid:\t1000"), std::string::npos) << proc;
  EXPECT_EQ(env.find("UMP_TOKEN"), std::string::npos) << env;
  EXPECT_NE(env.find("umpteenth"), std::string::npos) << env;
}

TEST_F(DriverEngineTest, a_command_that_hangs_is_killed_with_all_its_children) {
  runs::ExecOutcome hung;
  std::string left;
  controllers_.reset();
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
  provider("[]");
  job("hello");
  std::string run = start_run("hello");
  ASSERT_TRUE(ends(run, Phase::succeeded)) << ground_.run(run).dump_pretty();
  EXPECT_TRUE(hung.timed_out);
  EXPECT_EQ(left, "");
}

TEST_F(DriverEngineTest, a_container_that_someone_removes_fails_its_run_within_a_second) {
  provider(
      R"([{"call":{"tool":"bash","arguments":{"command":"sleep 300","timeout_seconds":300}}}])");
  job("hello");
  std::string run = start_run("hello");
  ASSERT_TRUE(eventually([&] { return ground_.status(run).phase == Phase::running; },
                         std::chrono::seconds(60)));
  client_->remove_container(ground_.status(run).sandbox.container);
  auto from = std::chrono::steady_clock::now();
  ASSERT_TRUE(ends(run, Phase::failed)) << ground_.run(run).dump_pretty();
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(5))
      << "noticed at once; the rest is the removal of its network on a busy machine";
  EXPECT_NE(ground_.status(run).message.find("sandbox is gone"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return networks_of_runs() == 0; }));
}

TEST_F(DriverEngineTest, stopping_removes_the_sandboxes_within_ten_seconds) {
  provider(
      R"([{"call":{"tool":"bash","arguments":{"command":"sleep 300","timeout_seconds":300}}}])");
  job("hello");
  std::string run = start_run("hello");
  ASSERT_TRUE(eventually([&] { return ground_.status(run).phase == Phase::running; },
                         std::chrono::seconds(60)));
  EXPECT_TRUE(controllers_->stop(Duration(10'000)));
  EXPECT_EQ(ground_.status(run).message, "interrupted: umpd stopped while this run was executing");
  EXPECT_EQ(ours("sandbox"), 0U);
  EXPECT_EQ(networks_of_runs(), 0U);
}

}  // namespace
}  // namespace umpteenth::controllers
