// What a workspace says of itself: counts, spending, readiness.
#include <gtest/gtest.h>

#include "apis/object.h"
#include "controllers/workspace/plan.h"
#include "tests/controllers/world.h"

namespace umpteenth::controllers {
namespace {

using apis::Phase;

json::Value a_workspace(const char* spec) {
  return json::Value::object(
      {{"metadata", json::Value::object({{"name", "web"}, {"generation", 3}})},
       {"spec", json::parse(spec)}});
}

std::string ready(const json::Value& status) {
  auto condition = apis::find_condition(json::Value::object({{"status", status}}), "Ready");
  return condition ? condition->status + " " + condition->reason + " " + condition->message : "";
}

TEST(WorkspacePlan, counts_and_says_that_it_is_ready) {
  auto object = a_workspace(R"({"members":[{"user":"a"},{"group":"g"}]})");
  auto status = workspace::plan_status(object, {.jobs = 4, .spent_micro_usd = 1'500'000},
                                       at("2026-03-02T10:00:00Z"));
  EXPECT_EQ(status.get_int("members"), 2);
  EXPECT_EQ(status.get_int("jobs"), 4);
  EXPECT_EQ(status.get_double("spendTodayUSD"), 1.5);
  EXPECT_EQ(status.get_int("observedGeneration"), 3);
  EXPECT_EQ(ready(status), "True Active ");
}

TEST(WorkspacePlan, is_not_ready_beyond_its_limit_and_while_it_goes) {
  auto object = a_workspace(R"({"limits":{"dailySpendUSD":5}})");
  Time now = at("2026-03-02T10:00:00Z");
  EXPECT_EQ(ready(workspace::plan_status(object, {0, 4'999'999}, now)), "True Active ");
  EXPECT_EQ(ready(workspace::plan_status(object, {0, 5'000'000}, now)),
            "False SpendLimitReached The workspace reached its daily spend limit of $5.00");
  object["metadata"].set("deletionTimestamp", "2026-03-02T09:00:00Z");
  EXPECT_TRUE(ready(workspace::plan_status(object, {}, now)).starts_with("False Terminating"));
}

TEST(WorkspacePlan, is_counted_again_when_the_day_ends) {
  EXPECT_EQ(workspace::until_recount(at("2026-03-02T23:59:00Z")), Duration(60'000));
  EXPECT_EQ(workspace::until_recount(at("2026-03-02T00:00:00Z")), Duration(3'600'000));
}

struct WorkspaceControllerTest : ::testing::Test {
  std::shared_ptr<Ground> ground = std::make_shared<Ground>();
  json::Value status() { return ground->get("workspaces", "", "default").get("status"); }
};

TEST_F(WorkspaceControllerTest, follows_jobs_and_spending_and_forgets_yesterday) {
  World world(ground, [](const agent::Params& params) {
    params.run.budget().charge(250'000, 1, 1);
    return succeed();
  });
  ground->create_job("one");
  ground->create_job("two");
  world.start();
  ASSERT_TRUE(world.passes([&] { return status().get_int("jobs") == 2; }));
  EXPECT_EQ(status().get_double("spendTodayUSD"), 0);
  ASSERT_TRUE(world.ends(world.start_run("one"), Phase::succeeded));
  EXPECT_TRUE(world.passes([&] { return status().get_double("spendTodayUSD") == 0.25; }));
  EXPECT_EQ(status().get_int("members"), 0);
  ground->create_job("three");
  EXPECT_TRUE(world.passes([&] { return status().get_int("jobs") == 3; }));
  ground->clock.advance(std::chrono::hours(24));
  EXPECT_TRUE(world.passes([&] { return status().get_double("spendTodayUSD") == 0; }));
}

TEST_F(WorkspaceControllerTest, a_burst_is_counted_once_and_what_stays_the_same_is_not_written) {
  World world(ground, [](const agent::Params&) { return succeed(); });
  world.start();
  ASSERT_TRUE(world.passes([&] { return status().is_object(); }));
  std::atomic<int> writes{0};
  auto watch = ground->store->watch("workspaces", ground->store->revision(),
                                    [&](const store::Event&) { ++writes; });
  for (int i = 0; i < 20; ++i) ground->create_job("job-" + std::to_string(i));
  ASSERT_TRUE(world.passes([&] { return status().get_int("jobs") == 20; }));
  EXPECT_TRUE(eventually([&] { return writes > 0; }));
  EXPECT_LE(writes, 2) << "the first event may come while the last count is still under way";
  int before = writes;
  ground->patch("jobs", "job-0", [](json::Value& job) { job["spec"].set("instruction", "other"); });
  ASSERT_TRUE(world.passes(
      [&] { return ground->get("jobs", "default", "job-0").get("status").is_object(); }));
  for (int i = 0; i < 200; ++i) ground->clock.advance(Duration(10));
  EXPECT_EQ(writes, before);
}

}  // namespace
}  // namespace umpteenth::controllers
