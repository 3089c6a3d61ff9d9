// Tests that make sandboxes of the prepared busybox image on a real engine, and look from inside.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/docker.h"
#include "engine/sandbox_images.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/paths.h"

namespace umpteenth::engine {

class SandboxesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const support::TestEngine& test = support::test_engine();
    if (!test.skip.empty()) GTEST_SKIP() << test.skip;
    engine_ = make_docker_engine({.endpoint = test.endpoint});
    images_ =
        std::make_unique<SandboxImages>(*engine_, instance(),
                                        std::map<std::string, std::filesystem::path>{
                                            {engine_->info().arch, support::bin_dir() + "/ump"}});
  }

  void TearDown() override {
    if (!engine_) return;
    for (const Container& c : engine_->list_containers({{kLabelInstance, instance()}}))
      engine_->remove_container(c.id);
    for (const Network& n : engine_->list_networks({{kLabelInstance, instance()}}))
      engine_->remove_network(n.id);
  }

  static void TearDownTestSuite() {
    const support::TestEngine& test = support::test_engine();
    if (!test.skip.empty()) return;
    const auto engine = make_docker_engine({.endpoint = test.endpoint});
    for (const Image& i : engine->list_images({{kLabelInstance, instance()}}))
      engine->remove_image(i.id);
  }

  static std::string instance() { return "sandboxes-test-" + std::to_string(getpid()); }

  // Without a network, unless `attach` gives it one.
  std::string sandbox(const std::string& name,
                      const std::function<void(ContainerSpec&)>& attach = {}) {
    ContainerSpec s;
    s.name = "st-" + std::to_string(getpid()) + "-" + name;
    s.image = images_->ensure_prepared("umpteenth-busybox:latest");
    s.entrypoint = {kUmpPath, "init", "--ttl", "10m"};
    s.user = "0:0";
    s.labels = {{kLabelInstance, instance()}, {kLabelRole, "sandbox"}};
    s.cap_drop = {"ALL"};
    s.memory_bytes = 64 << 20;
    s.pids = 64;
    s.network_mode = "none";
    if (attach) attach(s);
    const std::string id = engine_->create_container(s);
    engine_->start_container(id);
    return id;
  }

  struct Ran {
    std::optional<int> code;
    std::string out;
  };
  Ran as_agent(const std::string& id, const std::string& script) {
    Ran ran;
    const auto exec =
        engine_->exec(id, {{"bash", "-lc", script}, {}, "1000:1000", "/workspace", false},
                      [&](Output, std::string_view bytes) { ran.out += bytes; });
    ran.code = exec->wait(Duration{60'000});
    return ran;
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<SandboxImages> images_;
};

}  // namespace umpteenth::engine
