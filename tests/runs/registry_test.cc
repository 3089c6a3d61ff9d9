#include "runs/registry.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "store/open.h"

namespace umpteenth::runs {
namespace {

class RegistryTest : public testing::Test {
 protected:
  std::shared_ptr<LiveRun> a_run(std::string uid) {
    RunInfo info;
    info.ns = "default";
    info.job = "hello";
    info.uid = std::move(uid);
    return std::make_shared<LiveRun>(info, *store_, clock_);
  }

  std::unique_ptr<store::Store> store_ = store::make_memory_store();
  FakeClock clock_{Time{}};
  Registry registry_;
};

TEST_F(RegistryTest, a_token_opens_its_own_run_at_its_own_endpoint_only) {
  const auto first = a_run("1"), second = a_run("2");
  const std::string token_1 = registry_.add(first, "10.9.0.2");
  const std::string token_2 = registry_.add(second, "10.9.0.10");
  EXPECT_EQ(token_1.size(), 43U);
  EXPECT_NE(token_1, token_2);
  EXPECT_EQ(registry_.find(token_1, "10.9.0.2"), first);
  EXPECT_EQ(registry_.find(token_1, "::ffff:10.9.0.2"), first) << "as a dual-stack socket says it";
  EXPECT_EQ(registry_.find(token_1, "10.9.0.10"), nullptr);
  EXPECT_EQ(registry_.find(token_1, ""), nullptr);
  EXPECT_EQ(registry_.find(token_1 + "x", "10.9.0.2"), nullptr);
  EXPECT_EQ(registry_.find("", "10.9.0.2"), nullptr);
  EXPECT_EQ(registry_.find_by_uid("2"), second);
  EXPECT_EQ(registry_.all().size(), 2U);
}

TEST_F(RegistryTest, a_token_is_worthless_after_its_run) {
  const std::string token = registry_.add(a_run("1"), "10.9.0.2");
  registry_.remove("1");
  registry_.remove("1");
  EXPECT_EQ(registry_.find(token, "10.9.0.2"), nullptr);
  EXPECT_EQ(registry_.find_by_uid("1"), nullptr);
}

TEST_F(RegistryTest, adding_a_run_again_makes_its_older_token_worthless) {
  const auto run = a_run("1");
  const std::string old = registry_.add(run, "10.9.0.2");
  const std::string fresh = registry_.add(run, "10.9.0.2");
  EXPECT_EQ(registry_.find(old, "10.9.0.2"), nullptr);
  EXPECT_EQ(registry_.find(fresh, "10.9.0.2"), run);
}

TEST_F(RegistryTest, a_run_without_an_endpoint_gets_no_token) {
  EXPECT_THROW(registry_.add(a_run("1"), ""), Error);
}

}  // namespace
}  // namespace umpteenth::runs
