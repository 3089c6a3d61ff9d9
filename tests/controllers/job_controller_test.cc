// Jobs as a person sees them: schedules, overlap, deletion, history.
#include <gtest/gtest.h>

#include "apis/object.h"
#include "base/error.h"
#include "tests/controllers/world.h"

namespace umpteenth::controllers {
namespace {

using apis::Phase;

struct JobControllerTest : ::testing::Test {
  std::shared_ptr<Ground> ground = std::make_shared<Ground>();
  size_t count(Phase phase) {
    size_t n = 0;
    for (const auto& run : ground->runs()) {
      n += apis::run_status_from(run.get("status")).phase == phase;
    }
    return n;
  }
  bool settled(const std::string& job) {
    return ground->get("jobs", "default", job).get("status").is_object();
  }
};

TEST_F(JobControllerTest, a_schedule_starts_exactly_one_run_an_occurrence) {
  World world(ground, [](const agent::Params&) { return succeed(); });
  ground->create_job("tick", R"({"schedule":{"cron":"* * * * *"}})");
  world.start();
  ASSERT_TRUE(world.passes([&] { return settled("tick"); }));
  for (size_t n = 1; n <= 3; ++n) {
    ASSERT_TRUE(eventually([&] { return ground->clock.sleepers() >= 1; }));
    ground->clock.advance(Duration(60'000));
    ASSERT_TRUE(world.passes([&] { return count(Phase::succeeded) == n; })) << n;
  }
  EXPECT_EQ(ground->runs().size(), 3U);
  auto run = ground->runs().at(0);
  EXPECT_EQ(run.get("spec").get_string("trigger"), "Schedule");
  EXPECT_FALSE(run.get("spec").get_string("scheduledFor").empty());
  EXPECT_EQ(apis::label_of(run, apis::kJobLabel), "tick");
  EXPECT_TRUE(world.passes([&] {  // the status follows its run a moment later
    auto job = ground->get("jobs", "default", "tick");
    return job.at_path({"status", "lastRun"}).get_string("phase") == "Succeeded";
  }));
}

TEST_F(JobControllerTest, the_same_occurrence_planned_twice_is_one_run) {
  World world(
      ground, [](const agent::Params&) { return succeed(); }, 0);
  ground->create_job("tick");
  job::StartRequest request;
  request.ns = "default";
  request.job = "tick";
  request.trigger = "Schedule";
  request.actor = "test";
  request.scheduled_for = at("2026-03-02T10:00:00Z");
  auto first = world.controllers->start_run(request);
  auto second = world.controllers->start_run(request);
  EXPECT_EQ(apis::uid_of(first), apis::uid_of(second));
  World other(
      ground, [](const agent::Params&) { return succeed(); }, 0);
  EXPECT_EQ(apis::uid_of(other.controllers->start_run(request)), apis::uid_of(first));
  EXPECT_EQ(ground->runs().size(), 1U);
}

TEST_F(JobControllerTest, skip_records_a_run_that_was_skipped) {
  World world(ground, work_until_stopped);
  ground->create_job("hello");
  world.start();
  std::string first = world.start_run("hello");
  ASSERT_TRUE(world.ends(first, Phase::running));
  std::string second = world.start_run("hello");
  EXPECT_EQ(ground->status(second).phase, Phase::skipped);
  EXPECT_EQ(ground->status(second).message,
            "Skipped because another run of this job was still active: run/" + first);
  ground->cancel(first);
  ASSERT_TRUE(world.ends(first, Phase::cancelled));
  EXPECT_NE(ground->status(world.start_run("hello")).phase, Phase::skipped);
}

TEST_F(JobControllerTest, queue_holds_runs_in_order_and_parallel_does_not) {
  std::mutex mutex;
  std::vector<std::string> order;
  std::atomic<int> at_once{0}, most{0};
  World world(ground, [&](const agent::Params& params) {
    int now = ++at_once;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    {
      std::lock_guard lock(mutex);
      order.push_back(params.run.info().name);
    }
    --at_once;
    return succeed();
  });
  ground->create_job("line", R"({"schedule":{"overlapPolicy":"Queue"}})");
  std::vector<std::string> runs;
  for (int i = 0; i < 4; ++i) {
    runs.push_back(world.start_run("line"));
    ground->clock.advance(Duration(1000));
  }
  world.start();
  for (const auto& run : runs) ASSERT_TRUE(world.ends(run, Phase::succeeded));
  EXPECT_EQ(order, runs) << "first come, first served";
  EXPECT_EQ(most, 1);
}

TEST_F(JobControllerTest, those_of_one_second_start_in_the_order_they_came) {
  std::mutex mutex;
  std::vector<std::string> order;
  World world(
      ground,
      [&](const agent::Params& params) {
        std::lock_guard lock(mutex);
        order.push_back(params.run.info().name);
        return succeed();
      },
      1);
  std::vector<std::string> runs;
  for (const char* job : {"zebra", "mule", "ant", "bee", "yak"}) {
    ground->create_job(job);
    runs.push_back(world.start_run(job));
  }
  world.start();
  for (const auto& run : runs) ASSERT_TRUE(world.ends(run, Phase::succeeded));
  EXPECT_EQ(order, runs);
}

TEST_F(JobControllerTest, no_more_than_the_limits_run_at_once) {
  World world(ground, work_until_stopped, 3);
  ground->create_job("many", R"({"schedule":{"overlapPolicy":"Parallel"}})");
  ground->patch("workspaces", "default", [](json::Value& workspace) {
    workspace["spec"]["limits"].set("maxConcurrentRuns", 2);
  });
  world.start();
  std::vector<std::string> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(world.start_run("many"));
  ASSERT_TRUE(world.passes([&] { return count(Phase::running) == 2; }));
  EXPECT_EQ(count(Phase::queued), 2U);
  EXPECT_EQ(ground->sandboxes(), 2U);
  ground->patch("workspaces", "default", [](json::Value& workspace) {
    workspace["spec"]["limits"].set("maxConcurrentRuns", 10);
  });
  ASSERT_TRUE(world.passes([&] { return count(Phase::running) == 3; }));
  EXPECT_EQ(count(Phase::queued), 1U) << "runs.max_concurrent is 3";
}

TEST_F(JobControllerTest, deleting_a_job_cancels_what_waits_lets_the_active_end_and_keeps_records) {
  std::atomic<bool> finish{false};
  World world(ground, [&](const agent::Params&) {
    while (!finish) std::this_thread::yield();
    return succeed();
  });
  ground->create_job("hello", R"({"schedule":{"overlapPolicy":"Queue"}})");
  world.start();
  ASSERT_TRUE(world.passes([&] {
    return apis::has_finalizer(ground->get("jobs", "default", "hello"), apis::kRunsFinalizer);
  }));
  std::string active = world.start_run("hello");
  ASSERT_TRUE(world.ends(active, Phase::running));
  std::string waits = world.start_run("hello");
  ground->patch("jobs", "hello", [&](json::Value& job) {
    job["metadata"].set("deletionTimestamp", format_time(ground->clock.now()));
  });
  ASSERT_TRUE(world.ends(waits, Phase::cancelled));
  EXPECT_EQ(ground->status(waits).message, "Cancelled before it started");
  EXPECT_TRUE(ground->get("jobs", "default", "hello").is_object()) << "its run still works";
  EXPECT_THROW(world.start_run("hello"), Error);
  finish = true;
  ASSERT_TRUE(world.ends(active, Phase::succeeded));
  EXPECT_TRUE(world.passes([&] { return ground->get("jobs", "default", "hello").is_null(); }));
  EXPECT_EQ(ground->runs().size(), 2U);
}

TEST_F(JobControllerTest, history_limits_remove_runs_with_what_was_kept_of_them) {
  World world(ground, [](const agent::Params&) { return succeed(); });
  ground->create_job("hello", R"({"history":{"successful":2,"failed":2}})");
  world.start();
  std::vector<std::string> uids;
  for (int i = 0; i < 4; ++i) {
    std::string run = world.start_run("hello");
    uids.push_back(apis::uid_of(ground->run(run)));
    ASSERT_TRUE(world.passes([&] {
      auto now = ground->run(run);
      return now.is_null() || apis::terminal(ground->status(run).phase);
    }));
    ground->clock.advance(Duration(2000));
  }
  EXPECT_TRUE(world.passes([&] { return ground->runs().size() == 2; }));
  EXPECT_TRUE(
      world.passes([&] { return ground->store->timeline_read(uids.at(0), 0, 10).empty(); }));
}

TEST_F(JobControllerTest, its_events_count_what_became_of_its_runs_and_name_the_last) {
  std::atomic<bool> fail{false};
  World world(ground, [&](const agent::Params& params) {
    if (fail) return work_until_stopped(params);
    return succeed();
  });
  ground->create_job("hello", R"({"limits":{"timeoutSeconds":30}})");
  world.start();
  std::string last;
  for (int i = 0; i < 3; ++i) {
    last = world.start_run("hello");
    ASSERT_TRUE(world.ends(last, Phase::succeeded));
  }
  auto event = [&](const std::string& reason) {
    for (const auto& record :
         ground->store->list({.kind = "events", .ns = "default", .limit = 0, .next = ""}).items) {
      json::Value e = record->parse();
      if (e.get("involvedObject").get_string("kind") == "Job" && e.get_string("reason") == reason)
        return e;
    }
    return json::Value();
  };
  auto told = [&](const std::string& reason, int64_t count, const std::string& message) {
    EXPECT_TRUE(world.passes([&] {
      return event(reason).get_int("count") == count &&
             event(reason).get_string("message").starts_with(message);
    })) << event(reason).dump();
  };
  told("RunStarted", 3, "run " + last + " started");
  told("RunSucceeded", 3, "run " + last + " succeeded");
  EXPECT_EQ(event("RunSucceeded").get_string("type"), "Normal");
  EXPECT_TRUE(event("RunFailed").is_null());

  fail = true;
  std::string slow = world.start_run("hello");
  ASSERT_TRUE(world.ends(slow, Phase::running));
  std::string skipped = world.start_run("hello");
  told("RunSkipped", 1,
       "run " + skipped + " was skipped because another run of this job was still active: run/" +
           slow);
  ground->cancel(slow);
  ASSERT_TRUE(world.ends(slow, Phase::cancelled));
  told("RunCancelled", 1, "run " + slow + " was cancelled (by person)");
  slow = world.start_run("hello");
  ASSERT_TRUE(world.ends(slow, Phase::running));
  ground->clock.advance(Duration(31'000));
  told("RunTimedOut", 1, "run " + slow + " timed out: the run exceeded its time limit");
  EXPECT_EQ(event("RunTimedOut").get_string("type"), "Warning");
}

TEST_F(JobControllerTest, a_disk_limit_that_the_engine_cannot_keep_is_said_and_heals) {
  World world(ground, [&](const agent::Params&) {
    auto listed = ground->engine->list_containers({{engine::kLabelRole, "sandbox"}});
    EXPECT_EQ(ground->engine->spec_of(listed.at(0).id)->disk_bytes, int64_t{100} << 20);
    return succeed();
  });
  ground->create_job("bounded", R"({"sandbox":{"resources":{"diskMiB":100}}})");
  world.start();
  auto ready = [&] {
    auto condition = apis::find_condition(ground->get("jobs", "default", "bounded"), "Ready");
    return condition ? condition->status + " " + condition->reason + ": " + condition->message : "";
  };
  const std::string refusal =
      "spec.sandbox.resources.diskMiB: sandbox engine default cannot limit disk space; set it to 0";
  EXPECT_TRUE(world.passes([&] { return ready() == "False DiskLimitUnsupported: " + refusal; }))
      << ready();
  std::string run = world.start_run("bounded");
  ASSERT_TRUE(world.ends(run, Phase::failed));
  EXPECT_EQ(ground->status(run).message, refusal);
  EXPECT_EQ(ground->engine->count_calls("create_container"), 1U) << "the relay's";

  ground->engine->set_disk_limit(true);
  ground->clock.advance(std::chrono::minutes(1));  // the engine is looked at again
  EXPECT_TRUE(world.passes([&] { return ready().starts_with("True"); })) << ready();
  run = world.start_run("bounded");
  EXPECT_TRUE(world.ends(run, Phase::succeeded)) << ground->run(run).dump_pretty();
}

TEST_F(JobControllerTest, starting_checks_what_it_is_given) {
  World world(
      ground, [](const agent::Params&) { return succeed(); }, 0);
  ground->create_job("hello", R"({"inputs":[{"name":"since","required":true}]})");
  auto code = [&](job::StartRequest request) {
    try {
      world.controllers->start_run(request);
    } catch (const Error& e) {
      return e.code();
    }
    return Code::internal;
  };
  job::StartRequest request;
  request.ns = "default";
  request.job = "absent";
  request.trigger = "Manual";
  EXPECT_EQ(code(request), Code::not_found);
  request.job = "hello";
  EXPECT_EQ(code(request), Code::invalid) << "a required input";
  request.input = json::parse(R"({"since":null})");
  EXPECT_EQ(code(request), Code::invalid) << "null is none";
  request.input = json::parse(R"({"since":"x"})");
  request.instructions = std::string(10'001, 'x');
  EXPECT_EQ(code(request), Code::invalid);
  request.instructions = "be quick";
  request.name = "mine";
  request.dry_run = true;
  EXPECT_EQ(apis::name_of(world.controllers->start_run(request)), "mine");
  EXPECT_TRUE(ground->runs().empty());
  request.dry_run = false;
  world.controllers->start_run(request);
  EXPECT_EQ(code(request), Code::already_exists);
}

TEST_F(JobControllerTest, retention_takes_timelines_and_artifacts_and_leaves_the_record) {
  World world(ground, [&](const agent::Params&) {
    auto listed = ground->engine->list_containers({{engine::kLabelRole, "sandbox"}});
    ground->engine->put_file(listed.at(0).id, "/ump/outputs", {"", 0755, 1000, 1000, true});
    ground->engine->put_file(listed.at(0).id, "/ump/outputs/a", {"kept", 0644, 1000, 1000, false});
    return succeed();
  });
  ground->create_job("hello");
  world.start();
  std::string run = world.start_run("hello");
  ASSERT_TRUE(world.ends(run, Phase::succeeded));
  ASSERT_EQ(ground->status(run).artifacts.size(), 1U);
  std::string digest = ground->status(run).artifacts[0].digest;
  EXPECT_EQ(ground->store->blob_get(digest), "kept");
  ground->clock.advance(std::chrono::hours(24 * 89));
  EXPECT_FALSE(ground->timeline(run).empty());
  ground->clock.advance(std::chrono::hours(24 * 2));
  EXPECT_TRUE(world.passes([&] { return ground->timeline(run).empty(); }));
  EXPECT_TRUE(world.passes([&] { return ground->status(run).artifacts.empty(); }));
  EXPECT_THROW(ground->store->blob_get(digest), Error);
  EXPECT_EQ(ground->status(run).phase, Phase::succeeded);
}

}  // namespace
}  // namespace umpteenth::controllers
