// watch: what comes first, transitions, bookmarks, resuming, and how it ends.
#include "tests/server/api_fixture.h"

namespace umpteenth::server {
namespace {

using Lines = std::vector<json::Value>;

Lines lines_of(const std::string& text) {
  Lines lines;
  size_t from = 0;
  while (from < text.size()) {
    const size_t end = text.find('\n', from);
    lines.push_back(json::parse(text.substr(from, end - from)));
    from = end + 1;
  }
  return lines;
}

std::string type_and_name(const json::Value& line) {
  return line.get_string("type") + " " + apis::name_of(line.get("object"));
}

class Watch : public ApiTest {
 protected:
  // What is in the stream until `enough` lines came or it ended.
  struct Open {
    http::Response response;
    std::string text;
    bool ended = false;

    Lines until(size_t enough) {
      eventually([&] {
        const http::Stream::Drain drain = response.stream->drain();
        for (const std::string& chunk : drain.chunks) text += chunk;
        ended |= drain.ended || drain.aborted;
        return ended || lines_of(text).size() >= enough;
      });
      return lines_of(text);
    }
    bool ends() {
      return eventually([&] {
        until(0);
        return ended;
      });
    }
  };
  Open open(const std::string& query, const std::string& accept = "application/json") {
    Open o{send("GET", kNs + "/jobs?watch=true" + query, "", {{"Accept", accept}}), "", false};
    EXPECT_EQ(o.response.status, 200) << o.response.body;
    EXPECT_TRUE(o.response.stream);
    o.text = o.response.body;
    return o;
  }
  std::string now() { return std::to_string(store->revision()); }
};

TEST_F(Watch, current_objects_come_first_then_changes_in_order) {
  make_job("a");
  Open watch = open("");
  EXPECT_EQ(type_and_name(lines_of(watch.text).at(0)), "ADDED a");
  make_job("b");
  patch(kNs + "/jobs/a", "merge-patch+json", R"({"spec":{"instruction":"other"}})");
  send("DELETE", kNs + "/jobs/b");
  const Lines lines = watch.until(4);
  ASSERT_EQ(lines.size(), 4U) << watch.text;
  EXPECT_EQ(type_and_name(lines[1]), "ADDED b");
  EXPECT_EQ(type_and_name(lines[2]), "MODIFIED a");
  EXPECT_EQ(type_and_name(lines[3]), "DELETED b");
  EXPECT_GT(apis::revision_of(lines[3].get("object")), apis::revision_of(lines[2].get("object")));
}

TEST_F(Watch, from_a_revision_only_what_came_after) {
  make_job("a");
  const std::string from = now();
  make_job("b");
  Open watch = open("&resourceVersion=" + from);
  EXPECT_TRUE(watch.response.body.empty());
  const Lines lines = watch.until(1);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(type_and_name(lines[0]), "ADDED b");
}

TEST_F(Watch, other_workspaces_and_kinds_stay_out) {
  ok("POST", kGv + "/workspaces", workspace("web"), 201);
  Open watch = open("&resourceVersion=" + now());
  ok("POST", kGv + "/namespaces/web/jobs", a_job("w"), 201);
  make_job("mine");
  const Lines lines = watch.until(1);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(type_and_name(lines[0]), "ADDED mine");
}

TEST_F(Watch, leaving_and_entering_a_selector_is_deleted_and_added) {
  make_job("a", "x", R"({"app":"demo"})");
  Open watch = open("&labelSelector=app%3Ddemo");
  patch(kNs + "/jobs/a", "merge-patch+json", R"({"metadata":{"labels":{"app":"other"}}})");
  const json::Value left = watch.until(2).at(1);
  EXPECT_EQ(type_and_name(left), "DELETED a");
  EXPECT_EQ(left.at_path({"object", "metadata", "labels", "app"}).as_string(), "demo")
      << "the old object";
  EXPECT_EQ(apis::revision_of(left.get("object")), store->revision()) << "under the new revision";
  patch(kNs + "/jobs/a", "merge-patch+json", R"({"metadata":{"labels":{"app":"demo"}}})");
  EXPECT_EQ(type_and_name(watch.until(3).at(2)), "ADDED a");
}

TEST_F(Watch, one_name_by_field_selector) {
  make_job("a");
  make_job("b");
  Open watch = open("&fieldSelector=metadata.name%3Db&resourceVersion=0");
  EXPECT_EQ(lines_of(watch.text).size(), 1U);
  make_job("c");
  send("DELETE", kNs + "/jobs/b");
  EXPECT_EQ(type_and_name(watch.until(2).at(1)), "DELETED b");
}

TEST_F(Watch, table_names_its_columns_once) {
  make_job("a");
  Open watch = open("", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
  make_job("b");
  const Lines lines = watch.until(2);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].get("object").get_string("kind"), "Table");
  EXPECT_FALSE(lines[0].get("object").get("columnDefinitions").empty());
  EXPECT_TRUE(lines[1].get("object").get("columnDefinitions").empty());
  EXPECT_EQ(lines[1].get("object").get("rows").items()[0].get("cells").items()[0].as_string(), "b");
}

TEST_F(Watch, initial_events_end_with_a_marked_bookmark) {
  make_job("a");
  const std::string ask = "&sendInitialEvents=true&allowWatchBookmarks=true";
  Open watch = open(ask + "&resourceVersionMatch=NotOlderThan");
  const Lines lines = watch.until(2);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].get_string("type"), "ADDED");
  EXPECT_EQ(lines[1].get_string("type"), "BOOKMARK");
  const json::Value& meta = lines[1].at_path({"object", "metadata"});
  EXPECT_EQ(meta.at_path({"annotations", "k8s.io/initial-events-end"}).as_string(), "true");
  EXPECT_EQ(meta.get_string("resourceVersion"), now());
  EXPECT_EQ(send("GET", kNs + "/jobs?watch=true" + ask).status, 422);
}

TEST_F(Watch, bookmark_at_the_end_tells_where_to_resume) {
  Open watch = open("&resourceVersion=" + now() + "&allowWatchBookmarks=true&timeoutSeconds=1");
  ok("POST", kGv + "/workspaces", workspace("web"), 201);  // moves the counter, is no job
  EXPECT_TRUE(watch.ends());
  const Lines lines = lines_of(watch.text);
  ASSERT_EQ(lines.size(), 1U) << watch.text;
  EXPECT_EQ(lines[0].get_string("type"), "BOOKMARK");
  EXPECT_EQ(lines[0].at_path({"object", "metadata", "resourceVersion"}).as_string(), now());
}

TEST_F(Watch, timeout_ends_it_properly) {
  Open watch = open("&timeoutSeconds=1");
  EXPECT_TRUE(watch.ends());
  EXPECT_TRUE(watch.text.empty());
  EXPECT_EQ(send("GET", kNs + "/jobs?watch=1&timeoutSeconds=soon").status, 400);
}

TEST_F(Watch, too_old_a_revision_is_an_error_event_and_the_end) {
  // The store keeps 20 000 events.
  for (int i = 0; i < 41; ++i) {
    store::Commit commit;
    commit.actor = "test";
    for (int j = 0; j < 500; ++j)
      commit.changes.push_back({store::Verb::create,
                                {"events", "default", std::to_string(i) + "-" + std::to_string(j)},
                                json::Value::object({{"metadata", json::Value::object()}}),
                                {}});
    store->commit(commit);
  }
  ASSERT_TRUE(eventually([&] { return store->oldest_watchable() > 1; }));
  Open watch = open("&resourceVersion=1");
  EXPECT_TRUE(watch.ends());
  const Lines lines = lines_of(watch.text);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].get_string("type"), "ERROR");
  const json::Value& status = lines[0].get("object");
  EXPECT_EQ(status.get_int("code"), 410);
  EXPECT_EQ(status.get_string("reason"), "Expired");
  EXPECT_TRUE(status.get_string("message").starts_with("too old resource version: 1 ("));
}

TEST_F(Watch, a_revision_of_the_future_is_refused) {
  refused(send("GET", kNs + "/jobs?watch=true&resourceVersion=999"), 504,
          "Too large resource version: 999, current: " + now());
}

TEST_F(Watch, a_client_that_does_not_read_is_cut) {
  Open watch = open("&resourceVersion=" + now());
  const std::string big(19'000, 'x');
  for (int i = 0; i < 300; ++i) {
    if (watch.response.stream->overflowed()) break;
    if (i == 0)
      make_job("a", big);
    else
      patch(kNs + "/jobs/a", "merge-patch+json",
            R"({"spec":{"instruction":")" + std::to_string(i) + big + "\"}}");
  }
  EXPECT_TRUE(eventually([&] { return watch.response.stream->overflowed(); }));
}

TEST_F(Watch, tokens_get_the_events_of_their_workspaces) {
  ok("POST", kGv + "/workspaces", workspace("web"), 201);
  token = token_for(Role::member, {"web"});
  Open watch{send("GET", kGv + "/jobs?watch=true"), "", false};
  ASSERT_EQ(watch.response.status, 200);
  const std::string admin = tokens.rotate_admin();
  const http::Headers as_admin = {{"Authorization", "Bearer " + admin}};
  send("POST", kNs + "/jobs", a_job("hidden"), as_admin);
  send("POST", kGv + "/namespaces/web/jobs", a_job("seen"), as_admin);
  EXPECT_EQ(type_and_name(watch.until(1).at(0)), "ADDED seen");
}

}  // namespace
}  // namespace umpteenth::server
