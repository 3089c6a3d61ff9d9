#include <gtest/gtest.h>

#include "base/error.h"
#include "controllers/run/capture.h"
#include "controllers/run/collect.h"
#include "controllers/run/plan.h"
#include "controllers/run/sandbox_spec.h"
#include "controllers/run/spend.h"
#include "engine/tar.h"

namespace umpteenth::controllers::run {
namespace {

using apis::OverlapPolicy;
using apis::Phase;

struct Case {
  const char* what;
  Situation situation;
  std::vector<std::string> actions;
};

TEST(RunPlan, table) {
  const std::string interrupted =
      "end as Failed: interrupted: umpd stopped while this run was executing";
  const std::vector<Case> cases{
      {"a queued run waits for its claim", {true, Phase::queued, false, false, false}, {}},
      {"cancelled in the queue",
       {true, Phase::queued, true, false, false},
       {"end as Cancelled: Cancelled before it started"}},
      {"its job is gone",
       {true, Phase::queued, false, false, true},
       {"end as Cancelled: Cancelled before it started"}},
      {"being claimed", {true, Phase::queued, true, true, false}, {"stop driver: cancelled"}},
      {"in flight without a driver",
       {true, Phase::provisioning, false, false, false},
       {interrupted}},
      {"running without a driver", {true, Phase::running, false, false, false}, {interrupted}},
      {"verifying without a driver, cancelled",
       {true, Phase::verifying, true, false, false},
       {interrupted}},
      {"at work", {true, Phase::running, false, true, false}, {}},
      {"at work, job gone: it ends by itself", {true, Phase::running, false, true, true}, {}},
      {"cancelled at work", {true, Phase::running, true, true, false}, {"stop driver: cancelled"}},
      {"ended", {true, Phase::failed, true, false, true}, {}},
      {"ended, driver still removing", {true, Phase::succeeded, true, true, false}, {}},
      {"row removed at work",
       {false, Phase::queued, false, true, false},
       {"stop driver: the run was removed"}},
      {"row removed", {false, Phase::queued, false, false, false}, {}},
  };
  for (const auto& c : cases) {
    std::vector<std::string> texts;
    for (const auto& action : plan(c.situation)) texts.push_back(to_string(action));
    EXPECT_EQ(texts, c.actions) << c.what;
  }
}

Waiting waiting(const char* uid, const char* ns, const char* job, Phase phase = Phase::queued,
                OverlapPolicy overlap = OverlapPolicy::parallel) {
  return {uid, ns, job, phase, false, overlap};
}

using Uids = std::vector<std::string>;

TEST(RunPlan, claims_are_first_come_first_served_within_the_limits) {
  std::vector<Waiting> runs{waiting("1", "a", "x", Phase::running), waiting("2", "a", "x"),
                            waiting("3", "b", "y"), waiting("4", "a", "x")};
  EXPECT_EQ(plan_claims(runs, {3, {}}), (Uids{"2", "3"}));
  EXPECT_EQ(plan_claims(runs, {1, {}}), Uids{});
  EXPECT_EQ(plan_claims(runs, {10, {{"a", 1}}}), Uids{"3"}) << "a full workspace holds up no other";
  EXPECT_EQ(plan_claims(runs, {10, {}}), (Uids{"2", "3", "4"}));
  EXPECT_EQ(plan_claims(runs, {0, {}}), Uids{});
}

TEST(RunPlan, a_job_that_queues_has_one_run_at_a_time) {
  std::vector<Waiting> runs{waiting("1", "a", "x", Phase::queued, OverlapPolicy::queue),
                            waiting("2", "a", "x", Phase::queued, OverlapPolicy::queue),
                            waiting("3", "b", "x", Phase::queued, OverlapPolicy::queue)};
  EXPECT_EQ(plan_claims(runs, {10, {}}), (Uids{"1", "3"}));
  runs[0].phase = Phase::provisioning;
  EXPECT_EQ(plan_claims(runs, {10, {}}), Uids{"3"});
  runs[2].cancel_requested = true;
  EXPECT_EQ(plan_claims(runs, {10, {}}), Uids{});
}

TEST(RunPlan, the_sweep_takes_only_what_is_ours_and_driven_by_nobody) {
  auto container = [](const char* id, const char* instance, const char* role, const char* run) {
    engine::Container c;
    c.id = id;
    c.labels = {
        {engine::kLabelInstance, instance}, {engine::kLabelRole, role}, {engine::kLabelRun, run}};
    return c;
  };
  engine::Network network;
  network.id = "n1";
  network.labels = {{engine::kLabelInstance, "me"}, {engine::kLabelRole, "run-network"}};
  engine::Network foreign;
  foreign.id = "n2";
  auto left = plan_sweep(
      {container("c1", "me", "sandbox", "gone"), container("c2", "me", "sandbox", "live"),
       container("c3", "you", "sandbox", "gone"), container("c4", "me", "relay", ""),
       container("c5", "me", "helper", "gone"), engine::Container{}},
      {network, foreign}, "me", {"live"});
  ASSERT_EQ(left.containers.size(), 1U);
  EXPECT_EQ(left.containers[0].id, "c1");
  EXPECT_FALSE(left.containers[0].reason.empty());
  ASSERT_EQ(left.networks.size(), 1U);
  EXPECT_EQ(left.networks[0].id, "n1");
  engine::Container probe = container("p1", "me", "namespace-probe", ""), ended = probe;
  probe.state = "running";
  ended.id = "p2";
  ended.state = "exited";
  left = plan_sweep({probe, ended}, {}, "me", {});
  ASSERT_EQ(left.containers.size(), 1U);
  EXPECT_EQ(left.containers[0].id, "p2");
  EXPECT_EQ(plan_sweep({container("c1", "", "sandbox", "gone")}, {}, "", {}), Leftovers{})
      << "without an identity nothing is ours";
}

TEST(Capture, keeps_the_head_and_the_tail_of_a_command_that_prints_forever) {
  Capture capture(5, 5);
  for (int i = 0; i < 100'000; ++i) capture.add("0123456789");
  capture.add("END");
  EXPECT_EQ(capture.total(), 1'000'003U);
  EXPECT_EQ(capture.text(), "01234\n… 999993 bytes left out …\n89END");
  Capture exact(5, 5);
  exact.add("0123456789");
  EXPECT_EQ(exact.text(), "0123456789");
  Capture one_more(5, 5);
  one_more.add("0123456789a");
  EXPECT_EQ(one_more.text(), "01234\n… 1 bytes left out …\n6789a");
  Capture no_tail(3, 0);
  no_tail.add("abcdef");
  EXPECT_EQ(no_tail.text(), "abc\n… 3 bytes left out …\n");
}

std::vector<std::string> kept_paths(const std::string& tar, Collected* all = nullptr) {
  auto collected = collect_artifacts(tar, [](std::string_view) { return std::string("digest"); });
  std::vector<std::string> paths;
  for (const auto& artifact : collected.artifacts) paths.push_back(artifact.path);
  if (all != nullptr) *all = collected;
  return paths;
}

TEST(Collect, keeps_regular_files_and_refuses_links_by_name) {
  engine::TarWriter tar;
  tar.add_directory("outputs");
  tar.add_file("outputs/b.txt", "bb");
  tar.add_directory("outputs/sub");
  tar.add_file("outputs/sub/a.txt", "");
  tar.add_symlink("outputs/passwd", "/etc/passwd");
  tar.add_file("outputs/bad\nname", "x");
  tar.add_file("outputs/\xFFname", "x");
  Collected all;
  EXPECT_EQ(kept_paths(tar.finish(), &all), (std::vector<std::string>{"b.txt", "sub/a.txt"}));
  ASSERT_EQ(all.refused.size(), 3U) << "a Run with such a path in its status could not be read";
  EXPECT_EQ(all.refused[0], "passwd: symbolic links are not collected");
}

TEST(Collect, refuses_what_is_too_large_and_what_is_no_tar) {
  engine::TarWriter large;
  std::string half(26U << 20, 'x');
  large.add_file("outputs/a", half);
  large.add_file("outputs/b", half);
  EXPECT_THROW(kept_paths(large.finish()), Error);
  EXPECT_THROW(kept_paths("this is no archive at all"), Error);
  engine::TarWriter many;
  for (int i = 0; i < 30; ++i) many.add_symlink("outputs/l" + std::to_string(i), "x");
  Collected all;
  EXPECT_TRUE(kept_paths(many.finish(), &all).empty());
  EXPECT_EQ(all.refused.size(), 21U);
  EXPECT_EQ(all.refused.back(), "and 10 more");
}

TEST(Spend, the_limit_is_off_at_zero_and_says_its_sum) {
  EXPECT_EQ(spend_problem(1'000'000'000, 0), "");
  EXPECT_EQ(spend_problem(4'999'999, 5), "");
  EXPECT_EQ(spend_problem(5'000'000, 5), "The workspace reached its daily spend limit of $5.00");
}

}  // namespace
}  // namespace umpteenth::controllers::run
