// Starting runs, and what they leave: timeline, log, artifacts; history, plan.
#include "server/run_reads.h"
#include "tests/server/api_fixture.h"

namespace umpteenth::server {
namespace {

class Runs : public ApiTest {
 protected:
  static std::string a_run(const std::string& more = "") {
    return R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Run","metadata":{"name":"r1","labels":{"k":"v"}},"spec":{"job":"a","input":{"n":3})" +
           more + "}}";
  }
  std::string add_run(const std::string& phase) {
    apis::RunSpec spec;
    spec.job = "a";
    spec.trigger = "API";
    json::Value run = apis::make_object(apis::run_kind(), "default", "r1", apis::to_json(spec));
    run["metadata"].set("uid", "uid-r1");
    run.set("status", json::Value::object({{"phase", phase}}));
    const std::string digest = store->blob_put("uid-r1", "contents");
    run["status"].set(
        "artifacts",
        json::Value::array({json::Value::object(
            {{"path", "out/a \"b\".txt"}, {"size", 8}, {"digest", "sha256:" + digest}})}));
    store->commit_one({store::Verb::create, {"runs", "default", "r1"}, run, {}}, "test", "run");
    return kNs + "/runs/r1";
  }
  void say(const std::string& text) {
    const uint64_t seq = ++said;
    store->timeline_append(
        "uid-r1",
        {json::Value::object(
             {{"seq", seq}, {"time", "2026-11-30T08:00:00.000Z"}, {"type", "log"}, {"text", text}})
             .dump()});
  }
  void finish() {
    patch(kNs + "/runs/r1/status", "merge-patch+json", R"({"status":{"phase":"Succeeded"}})");
  }
  uint64_t said = 0;
};

TEST_F(Runs, a_posted_run_goes_the_way_of_every_trigger) {
  ok("POST", kNs + "/runs", a_run(), 201);
  EXPECT_EQ(trigger.last.job, "a");
  EXPECT_EQ(trigger.last.trigger, "API");
  EXPECT_EQ(trigger.last.actor, "admin");
  EXPECT_EQ(trigger.last.name, "r1");
  EXPECT_EQ(trigger.last.input.dump(), R"({"n":3})");
  EXPECT_EQ(trigger.last.labels.dump(), R"({"k":"v"})");
  EXPECT_TRUE(exists("runs", "r1"));
}

TEST_F(Runs, dry_run_starts_none) {
  ok("POST", kNs + "/runs?dryRun=All", a_run(), 201);
  EXPECT_FALSE(exists("runs", "r1"));
}

TEST_F(Runs, what_a_run_may_not_bring) {
  EXPECT_EQ(send("POST", kNs + "/runs", a_run(R"(,"cancelRequested":true)")).status, 422);
  refused(send("POST", kNs + "/runs",
               R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Run","metadata":{},"spec":{}})"),
          422, "spec.job: Required value");
  const http::Response warned = send("POST", kNs + "/runs", a_run(R"(,"jobSpec":{"x":1})"));
  EXPECT_EQ(warned.status, 201);
  EXPECT_EQ(warned.headers.get("Warning"), "299 - \"spec.jobSpec is set by the server: left out\"");
}

TEST_F(Runs, run_of_a_job_takes_input_and_instructions) {
  ok("POST", kNs + "/jobs/a/run", R"({"input":{"n":1},"instructions":"be quick"})", 201);
  EXPECT_EQ(trigger.last.trigger, "Manual");
  EXPECT_EQ(trigger.last.instructions, "be quick");
  ok("POST", kNs + "/jobs/b/run", "", 201);
  refused(send("POST", kNs + "/jobs/a/run", R"({"inputs":1})"), 400,
          "unknown field \"inputs\": the body has input, instructions and trigger");
  EXPECT_EQ(send("POST", kNs + "/jobs/a/run", R"({"trigger":"Schedule"})").status, 422);
}

TEST_F(Runs, an_input_that_the_job_does_not_declare_is_treated_as_an_unknown_field) {
  ok("POST", kNs + "/jobs",
     R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","metadata":{"name":"a"},"spec":{"instruction":"x","inputs":[{"name":"since"},{"name":"n"}]}})",
     201);
  const std::string path = kNs + "/jobs/a/run", typo = R"({"input":{"n":1,"sicne":"monday"}})";
  const std::string rule =
      "spec.input.sicne: Invalid value: \"monday\": the job does not declare it, its inputs are: "
      "since, n";
  const json::Value status =
      refused(send("POST", path + "?fieldValidation=Strict", typo), 422, rule);
  EXPECT_EQ(status.get("details").get("causes").items()[0].get_string("field"), "spec.input.sicne");
  EXPECT_FALSE(exists("runs", "a-1"));
  EXPECT_EQ(send("POST", kNs + "/runs?fieldValidation=Strict", a_run()).status, 201)
      << "a declared one";
  EXPECT_EQ(send("POST", path + "?fieldValidation=Strict", R"({"input":"text"})").status, 422);
  const http::Response warned = send("POST", path + "?dryRun=All", typo);
  EXPECT_EQ(warned.status, 201) << warned.body;
  EXPECT_EQ(warned.headers.get("Warning"), "299 - " + json::quote(rule));
  const http::Response ignored = send("POST", path + "?dryRun=All&fieldValidation=Ignore", typo);
  EXPECT_EQ(ignored.status, 201);
  EXPECT_FALSE(ignored.headers.has("Warning"));
  make_job("b");
  EXPECT_EQ(send("POST", kNs + "/jobs/b/run?fieldValidation=Strict", R"({"input":[1]})").status,
            201)
      << "a job without inputs takes anything";
}

TEST_F(Runs, without_controllers_starting_is_unavailable) {
  Api other({*store, sealer, clock, tokens, nullptr, nullptr, {}, {}, {}});
  const http::Response response = other.answer(
      a_request("POST", kNs + "/jobs/a/run", "", {{"Authorization", "Bearer " + token}}));
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.headers.get("Retry-After"), "1");
}

TEST_F(Runs, timeline_pages_by_sequence) {
  const std::string run = add_run("Running");
  for (const char* text : {"one", "two", "three"}) say(text);
  const std::string all = send("GET", run + "/timeline").body;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 3);
  const std::string rest = send("GET", run + "/timeline?after=2").body;
  EXPECT_EQ(json::parse(rest).get_string("text"), "three");
  const std::string one = send("GET", run + "/timeline?limit=1").body;
  EXPECT_EQ(json::parse(one).get_string("text"), "one");
  EXPECT_EQ(send("GET", run + "/timeline?after=x").status, 400);
  refused(send("GET", kNs + "/runs/nope/timeline"), 404, "runs.umpteenth.dev \"nope\" not found");
}

TEST_F(Runs, a_followed_timeline_ends_with_its_run) {
  const std::string run = add_run("Running");
  say("one");
  const http::Response response = send("GET", run + "/timeline?watch=1");
  ASSERT_TRUE(response.stream);
  std::string text;
  bool ended = false;
  const auto more = [&] {
    const http::Stream::Drain drain = response.stream->drain();
    for (const std::string& chunk : drain.chunks) text += chunk;
    ended |= drain.ended;
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_TRUE(eventually([&] { return more() == 1; }));
  say("two");
  EXPECT_TRUE(eventually([&] { return more() == 2; }));
  EXPECT_FALSE(ended);
  say("three");
  finish();
  EXPECT_TRUE(eventually([&] {
    more();
    return ended;
  }));
  EXPECT_EQ(more(), 3);
}

TEST_F(Runs, log_is_one_line_an_event_and_cannot_be_forged) {
  const std::string run = add_run("Succeeded");
  say("plain");
  say("evil\n2026-11-30T08:00:00.000Z finish text=forged");
  const std::string log = send("GET", run + "/log").body;
  EXPECT_EQ(log,
            "2026-11-30T08:00:00.000Z log text=plain\n"
            "2026-11-30T08:00:00.000Z log text=\"evil\\n2026-11-30T08:00:00.000Z finish "
            "text=forged\"\n");
  EXPECT_EQ(send("GET", run + "/log?tailLines=1").body.find("plain"), std::string::npos);
}

TEST_F(Runs, artifacts_are_listed_and_sent_as_attachments) {
  const std::string run = add_run("Succeeded");
  EXPECT_EQ(ok("GET", run + "/artifacts").get("items").size(), 1U);
  const http::Response file = send("GET", run + "/artifacts/out/a%20%22b%22.txt");
  EXPECT_EQ(file.status, 200) << file.body;
  EXPECT_EQ(file.body, "contents");
  EXPECT_EQ(file.headers.get("Content-Disposition"), "attachment; filename=\"a b.txt\"");
  EXPECT_EQ(file.headers.get("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(send("GET", run + "/artifacts/out/../../etc/passwd").status, 404);
}

TEST_F(Runs, only_members_of_the_workspace_read_them) {
  const std::string run = add_run("Succeeded");
  ok("POST", kGv + "/workspaces", workspace("web"), 201);
  token = token_for(Role::owner, {"web"});
  for (const char* part : {"", "/timeline", "/log", "/artifacts", "/history", "/plan"})
    EXPECT_EQ(send("GET", run + part).status, 403) << part;
}

TEST_F(Runs, a_cancel_is_the_one_change_of_a_spec) {
  add_run("Running");
  EXPECT_EQ(patch(kNs + "/runs/r1", "merge-patch+json", R"({"spec":{"instructions":"x"}})").status,
            422);
}

TEST_F(Runs, a_cancel_names_who_asked_and_comes_once) {
  add_run("Running");
  const std::string cancel =
      R"({"metadata":{"annotations":{"umpteenth.dev/cancelled-by":"somebody else"}},"spec":{"cancelRequested":true}})";
  ASSERT_EQ(patch(kNs + "/runs/r1", "merge-patch+json", cancel).status, 200);
  const auto canceller = [&] {
    return apis::annotation_of(ok("GET", kNs + "/runs/r1"), apis::kCancelledBy);
  };
  EXPECT_EQ(canceller(), "admin");
  token = token_for(Role::member, {"default"});
  EXPECT_EQ(
      patch(kNs + "/runs/r1", "merge-patch+json", R"({"spec":{"cancelRequested":true}})").status,
      200);
  EXPECT_EQ(canceller(), "admin") << "the first counts";
}

TEST_F(Runs, a_run_that_has_ended_cannot_be_cancelled) {
  add_run("Succeeded");
  const std::string cancel = R"({"spec":{"cancelRequested":true}})";
  const json::Value status =
      refused(patch(kNs + "/runs/r1", "merge-patch+json", cancel), 422,
              "Run.umpteenth.dev \"r1\" is invalid: spec.cancelRequested: Forbidden: the run has "
              "already ended: Succeeded");
  EXPECT_EQ(status.get("details").get("causes").items()[0].get_string("field"),
            "spec.cancelRequested");
  EXPECT_EQ(
      patch(kNs + "/runs/r1", "merge-patch+json", R"({"metadata":{"labels":{"a":"b"}}})").status,
      200)
      << "its labels may change";
}

TEST_F(Runs, history_and_objects_at_a_revision) {
  const uint64_t first = apis::revision_of(make_job("a", "one"));
  patch(kNs + "/jobs/a", "merge-patch+json", R"({"spec":{"instruction":"two"}})");
  const json::Value items = ok("GET", kNs + "/jobs/a/history").get("items");
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items.items()[0].get_string("verb"), "update");
  EXPECT_EQ(items.items()[1].get_string("actor"), "admin");
  EXPECT_EQ(items.items()[1].get_string("revision"), std::to_string(first));
  EXPECT_EQ(ok("GET", kNs + "/jobs/a?revision=" + std::to_string(first))
                .at_path({"spec", "instruction"})
                .as_string(),
            "one");
  refused(send("GET", kNs + "/jobs/nope/history"), 404, "jobs.umpteenth.dev \"nope\" not found");
  add_run("Running");
  EXPECT_EQ(send("GET", kNs + "/runs/r1/history").status, 400);
  EXPECT_EQ(send("GET", kNs + "/jobs/a/history?limit=0").status, 400);
}

}  // namespace
}  // namespace umpteenth::server
