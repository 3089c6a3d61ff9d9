// What every store must do, run on each of them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/fd.h"
#include "store/open.h"

namespace umpteenth::store {
namespace {

json::Value job(const std::string& name, const std::string& instruction = "count to three") {
  return json::Value::object(
      {{"apiVersion", "umpteenth.dev/v1alpha1"},
       {"kind", "Job"},
       {"metadata", json::Value::object({{"name", name}, {"namespace", "default"}})},
       {"spec", json::Value::object({{"instruction", instruction}})}});
}
Key key(const std::string& name) { return {"jobs", "default", name}; }

struct Made {
  std::unique_ptr<TempDir> folder;
  std::unique_ptr<Store> store;
};
Made memory() { return {nullptr, make_memory_store()}; }
Made in_git() {
  auto folder = std::make_unique<TempDir>();
  Options options;
  options.data_dir = folder->path();
  return {std::move(folder), open_store(options)};
}

class Contract : public testing::TestWithParam<Made (*)()> {
 protected:
  Contract() : made_(GetParam()()) {}
  Store& store() { return *made_.store; }

  RecordPtr create(const std::string& name, const std::string& instruction = "count to three") {
    return store().commit_one({Verb::create, key(name), job(name, instruction), {}}, "admin",
                              "create " + name);
  }
  RecordPtr update(const std::string& name, json::Value object,
                   std::optional<uint64_t> expect = {}) {
    return store().commit_one({Verb::update, key(name), std::move(object), expect}, "admin",
                              "update " + name);
  }
  RecordPtr remove(const std::string& name) {
    return store().commit_one({Verb::remove, key(name), {}, {}}, "admin", "remove " + name);
  }
  Code refusal(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.code();
    }
    return Code::not_implemented;
  }

  Made made_;
};

// Collects events; wait() polls with a deadline.
class Seen {
 public:
  std::function<void(const Event&)> sink() {
    return [this](const Event& event) {
      std::lock_guard lock(mutex_);
      events_.push_back(event);
      changed_.notify_all();
    };
  }
  std::vector<Event> wait(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return events_.size() >= count; });
    return events_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
};

TEST_P(Contract, create_find_update_remove) {
  const RecordPtr made = create("a");
  EXPECT_EQ(made->parse().at_path({"metadata", "resourceVersion"}).as_string(),
            std::to_string(made->revision));
  EXPECT_EQ(store().find(key("a"))->json, made->json);
  EXPECT_EQ(store().revision(), made->revision);

  const RecordPtr changed = update("a", job("a", "count to four"), made->revision);
  EXPECT_GT(changed->revision, made->revision);
  EXPECT_EQ(store().find(key("a"))->parse().at_path({"spec", "instruction"}).as_string(),
            "count to four");

  const RecordPtr gone = remove("a");
  EXPECT_GT(gone->revision, changed->revision);
  EXPECT_EQ(gone->parse().at_path({"metadata", "resourceVersion"}).as_string(),
            std::to_string(gone->revision));
  EXPECT_EQ(store().find(key("a")), nullptr);
}

TEST_P(Contract, refuses_with_the_right_code) {
  const RecordPtr made = create("a");
  EXPECT_EQ(refusal([&] { create("a"); }), Code::already_exists);
  EXPECT_EQ(refusal([&] { update("b", job("b")); }), Code::not_found);
  EXPECT_EQ(refusal([&] { remove("b"); }), Code::not_found);
  EXPECT_EQ(refusal([&] { update("a", job("a", "x"), made->revision + 1); }), Code::conflict);
  EXPECT_EQ(refusal([&] { store().commit({}); }), Code::bad_request);
  Commit twice{{{Verb::update, key("a"), job("a", "1"), {}}, {Verb::remove, key("a"), {}, {}}},
               "admin",
               "twice"};
  EXPECT_EQ(refusal([&] { store().commit(twice); }), Code::bad_request);
  Commit many{std::vector<Change>(5001, {Verb::create, key("x"), job("x"), {}}), "admin", "many"};
  EXPECT_EQ(refusal([&] { store().commit(many); }), Code::too_large);
  EXPECT_EQ(store().revision(), made->revision);
}

TEST_P(Contract, write_without_effect_keeps_the_revision) {
  const RecordPtr made = create("a");
  json::Value same = made->parse();
  EXPECT_EQ(update("a", same)->revision, made->revision);
  json::Value reordered = json::Value::object();
  for (const char* part : {"spec", "metadata", "kind", "apiVersion"})
    reordered.set(part, same.get(part));
  EXPECT_EQ(update("a", reordered, made->revision)->revision, made->revision);
  EXPECT_EQ(store().revision(), made->revision);
  EXPECT_EQ(store().history(key("a"), 0).size(), 1U);
}

TEST_P(Contract, a_batch_is_all_or_nothing_and_each_change_has_a_revision) {
  create("b");
  const uint64_t before = store().revision();
  Commit bad{{{Verb::create, key("a"), job("a"), {}}, {Verb::create, key("b"), job("b"), {}}},
             "admin",
             "two"};
  EXPECT_EQ(refusal([&] { store().commit(bad); }), Code::already_exists);
  EXPECT_EQ(store().find(key("a")), nullptr);
  EXPECT_EQ(store().revision(), before);

  Commit good{{{Verb::create, key("z"), job("z"), {}},
               {Verb::remove, key("b"), {}, {}},
               {Verb::create, key("a"), job("a"), {}}},
              "admin",
              "three"};
  const auto records = store().commit(good);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0]->key.name, "z");
  EXPECT_EQ(records[2]->revision, before + 1);
  EXPECT_EQ(records[1]->revision, before + 2);
  EXPECT_EQ(records[0]->revision, before + 3);
}

TEST_P(Contract, status_alone_is_not_history) {
  RecordPtr made = create("a");
  json::Value object = made->parse();
  object.set("status", json::Value::object({{"observedGeneration", 1}}));
  const RecordPtr with_status = update("a", object, made->revision);
  EXPECT_GT(with_status->revision, made->revision);
  EXPECT_EQ(store().history(key("a"), 0).size(), 1U);
  object.find("spec")->set("instruction", "other");
  update("a", object);
  EXPECT_EQ(store().history(key("a"), 0).size(), 2U);
  EXPECT_EQ(store().find(key("a"))->parse().at_path({"status", "observedGeneration"}).as_int(), 1);
}

TEST_P(Contract, history_and_objects_of_old) {
  const RecordPtr first = create("a", "one");
  update("a", job("a", "two"));
  const RecordPtr gone = remove("a");
  const auto lines = store().history(key("a"), 0);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].verb, Verb::remove);
  EXPECT_EQ(lines[0].revision, gone->revision);
  EXPECT_EQ(lines[1].message, "update a");
  EXPECT_EQ(lines[2].actor, "admin");
  EXPECT_EQ(lines[2].commit.size(), 40U);
  EXPECT_EQ(store().history(key("a"), 1).size(), 1U);

  const auto old = store().object_at(key("a"), std::to_string(first->revision));
  EXPECT_EQ(old.at_path({"spec", "instruction"}).as_string(), "one");
  EXPECT_TRUE(old.get("status").is_null());
  EXPECT_TRUE(old.at_path({"metadata", "resourceVersion"}).is_null());
  const auto by_commit = store().object_at(key("a"), lines[1].commit.substr(0, 12));
  EXPECT_EQ(by_commit.at_path({"spec", "instruction"}).as_string(), "two");
  EXPECT_EQ(refusal([&] { store().object_at(key("a"), "999999"); }), Code::not_found);
}

TEST_P(Contract, pages_stay_at_one_revision) {
  for (int i = 0; i < 25; ++i) create("j" + std::to_string(100 + i));
  Page page = store().list({"jobs", "", 10, ""});
  const uint64_t at = page.revision;
  EXPECT_EQ(page.items.size(), 10U);
  EXPECT_EQ(page.remaining, 15U);
  remove("j115");
  create("j1105");
  std::vector<std::string> names;
  for (;;) {
    for (const RecordPtr& record : page.items) names.push_back(record->key.name);
    EXPECT_EQ(page.revision, at);
    if (page.next.empty()) break;
    page = store().list({"jobs", "", 10, page.next});
  }
  EXPECT_EQ(names.size(), 25U);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::count(names.begin(), names.end(), "j115"), 1);
  EXPECT_EQ(store().list({"jobs", "", 0, ""}).items.size(), 25U);
  EXPECT_EQ(refusal([&] { store().list({"jobs", "", 10, "junk"}); }), Code::bad_request);
  EXPECT_EQ(refusal([&] { store().list({"jobs", "", 10, "1.5"}); }), Code::expired);
}

TEST_P(Contract, lists_by_workspace) {
  create("a");
  json::Value other = job("a");
  other.find("metadata")->set("namespace", "web");
  store().commit_one({Verb::create, {"jobs", "web", "a"}, other, {}}, "admin", "create");
  EXPECT_EQ(store().list({"jobs", "web", 0, ""}).items.size(), 1U);
  const Page all = store().list({"jobs", "", 0, ""});
  ASSERT_EQ(all.items.size(), 2U);
  EXPECT_EQ(all.items[0]->key.ns, "default");
  EXPECT_TRUE(store().list({"secrets", "", 0, ""}).items.empty());
}

TEST_P(Contract, watch_resumes_and_follows_in_order) {
  create("a");
  const uint64_t from = store().revision();
  create("b");
  Seen seen;
  const auto subscription = store().watch("jobs", from, seen.sink());
  update("b", job("b", "more"));
  remove("a");
  const auto events = seen.wait(3);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].type, Event::Type::added);
  EXPECT_EQ(events[0].previous, nullptr);
  EXPECT_EQ(events[1].type, Event::Type::modified);
  EXPECT_EQ(events[1].previous->json, events[0].record->json);
  EXPECT_EQ(events[2].type, Event::Type::removed);
  EXPECT_EQ(events[2].record->key.name, "a");
  for (size_t i = 1; i < events.size(); ++i)
    EXPECT_GT(events[i].record->revision, events[i - 1].record->revision);
}

TEST_P(Contract, watch_of_the_future_and_of_another_kind) {
  create("a");
  Seen seen;
  EXPECT_EQ(refusal([&] { store().watch("jobs", store().revision() + 1, seen.sink()); }),
            Code::timeout);
  Seen secrets;
  const auto other = store().watch("secrets", store().oldest_watchable(), secrets.sink());
  const auto jobs = store().watch("", store().oldest_watchable(), seen.sink());
  create("b");
  EXPECT_EQ(seen.wait(2).size(), 2U);
  EXPECT_TRUE(secrets.wait(0).empty());
}

TEST_P(Contract, a_subscription_ends_when_destroyed) {
  std::atomic<int> calls = 0;
  auto subscription = store().watch("jobs", store().revision(), [&](const Event&) { ++calls; });
  Seen seen;
  const auto second = store().watch("jobs", store().revision(), seen.sink());
  create("a");
  seen.wait(1);
  subscription.reset();
  const int before = calls;
  create("b");
  EXPECT_EQ(seen.wait(2).size(), 2U);
  EXPECT_EQ(calls, before);
}

TEST_P(Contract, writers_at_once_lose_nothing) {
  constexpr int kThreads = 8, kEach = 40;
  create("counter", "0");
  Seen seen;
  const auto subscription = store().watch("jobs", store().revision(), seen.sink());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kEach;) {
        const RecordPtr now = store().find(key("counter"));
        const int n = std::stoi(now->parse().at_path({"spec", "instruction"}).as_string());
        try {
          update("counter", job("counter", std::to_string(n + 1)), now->revision);
          ++i;
        } catch (const Error& e) {
          ASSERT_EQ(e.code(), Code::conflict);
        }
      }
    });
  for (auto& thread : threads) thread.join();
  const RecordPtr last = store().find(key("counter"));
  EXPECT_EQ(last->parse().at_path({"spec", "instruction"}).as_string(),
            std::to_string(kThreads * kEach));
  EXPECT_EQ(seen.wait(kThreads * kEach).size(), static_cast<size_t>(kThreads * kEach));
}

TEST_P(Contract, timelines_rows_and_blobs) {
  EXPECT_EQ(store().timeline_append("run-1", {"{\"a\":1}", "{\"a\":2}"}), 2U);
  EXPECT_EQ(store().timeline_append("run-1", {"{\"a\":3}"}), 3U);
  const auto rows = store().timeline_read("run-1", 1, 10);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].seq, 2U);
  EXPECT_EQ(rows[1].json, "{\"a\":3}");
  EXPECT_EQ(store().timeline_read("run-1", 0, 1).size(), 1U);
  store().timeline_remove("run-1");
  EXPECT_TRUE(store().timeline_read("run-1", 0, 10).empty());

  EXPECT_EQ(store().row_get("state", "k"), std::nullopt);
  store().row_put("state", "k", std::string("v\0w", 3));
  store().row_put("state", "a", "");
  EXPECT_EQ(store().row_get("state", "k"), std::string("v\0w", 3));
  EXPECT_EQ(store().row_list("state").size(), 2U);
  EXPECT_EQ(store().row_list("state")[0].first, "a");
  EXPECT_TRUE(store().row_remove("state", "k"));
  EXPECT_FALSE(store().row_remove("state", "k"));

  const std::string digest = store().blob_put("run-1", "bytes");
  EXPECT_EQ(store().blob_put("run-2", "bytes"), digest);
  EXPECT_EQ(digest.size(), 64U);
  store().blobs_remove("run-1");
  EXPECT_EQ(store().blob_get(digest), "bytes");
  store().blobs_remove("run-2");
  EXPECT_EQ(refusal([&] { store().blob_get(digest); }), Code::not_found);
  EXPECT_EQ(refusal([&] { store().blob_get("../../etc/passwd"); }), Code::not_found);
}

INSTANTIATE_TEST_SUITE_P(Memory, Contract, testing::Values(&memory));
INSTANTIATE_TEST_SUITE_P(Git, Contract, testing::Values(&in_git));

}  // namespace
}  // namespace umpteenth::store
