#include "engine/docker.h"
#include "tests/engine/contract.h"
#include "tests/support/engine_fixture.h"

namespace umpteenth::engine {
namespace {

EngineUnderTest docker_engine() {
  const support::TestEngine& test = support::test_engine();
  if (!test.skip.empty()) return {nullptr, test.skip};
  static const auto kEngine = make_docker_engine({.endpoint = test.endpoint});
  return {kEngine.get(), ""};
}

INSTANTIATE_TEST_SUITE_P(Docker, Contract, ::testing::Values(docker_engine),
                         [](const auto&) { return "engine"; });

}  // namespace
}  // namespace umpteenth::engine
