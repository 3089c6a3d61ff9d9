// Whole runs on a real container engine as umpd wires them: its engine parts, its front door, its
// broker. Every test of it runs on both attachments. To the egress proxy each name is this
// machine's loopback, and that a public address.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/http/server.h"
#include "broker/broker.h"
#include "broker/front.h"
#include "engine/engine.h"
#include "tests/controllers/world.h"

namespace umpteenth::controllers {

// Ground's objects, but time is real and so is the engine.
class EngineWorld : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override;
  void TearDown() override;
  static void TearDownTestSuite();

  static std::string instance();
  bool in_namespace() const { return GetParam() == std::string("namespace"); }

  void start(World::Agent agent, int64_t max_concurrent = 3);
  std::string start_run(const std::string& job, const std::string& input_json = "{}");
  bool ends(const std::string& run, apis::Phase phase);  // polls
  bool runs(const std::string& run);                     // until it is in phase Running

  void provider(const std::string& script);
  void job(const std::string& name, const std::string& more = "{}");

  std::vector<engine::Container> sandboxes();
  size_t networks_of_runs();

  TempDir dir_;
  Ground ground_;
  runs::Registry registry_;
  broker::Broker broker_{registry_, {}};
  std::unique_ptr<http::Server> broker_server_;
  std::unique_ptr<broker::Front> front_;
  apis::Sealer sealer_{"test", {"0123456789abcdef0123456789abcdef"}};
  std::string endpoint_;  // the engine's
  std::shared_ptr<engine::Engine> client_;
  std::unique_ptr<Controllers> controllers_;
};

// What the agent's user sees of a command.
std::string in_sandbox(const agent::Params& params, const std::string& script);

#define ON_BOTH_ATTACHMENTS(fixture)                                                       \
  INSTANTIATE_TEST_SUITE_P(attachment, fixture, ::testing::Values("network", "namespace"), \
                           [](const auto& info) { return std::string(info.param); })

}  // namespace umpteenth::controllers
