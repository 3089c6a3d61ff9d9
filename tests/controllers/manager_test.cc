#include "controllers/runtime/manager.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "controllers/runtime/informer.h"
#include "store/open.h"
#include "tests/controllers/support.h"

namespace umpteenth::controllers {
namespace {

json::Value object_named(const std::string& name) {
  return json::Value::object(
      {{"apiVersion", "umpteenth.dev/v1alpha1"},
       {"kind", "Job"},
       {"metadata", json::Value::object({{"name", name}, {"namespace", "default"}})},
       {"spec", json::Value::object({{"instruction", "x"}})}});
}

store::Key key_of(const std::string& name) { return {"jobs", "default", name}; }

struct ManagerTest : ::testing::Test {
  FakeClock clock{at("2026-01-01T00:00:00Z")};
  std::unique_ptr<store::Store> store = store::make_memory_store();
  std::mutex mutex;
  std::vector<std::string> seen;

  void create(const std::string& name) {
    store->commit_one({store::Verb::create, key_of(name), object_named(name), std::nullopt}, "test",
                      "create");
  }
  size_t times(const std::string& name) {
    std::lock_guard lock(mutex);
    return static_cast<size_t>(std::count(seen.begin(), seen.end(), name));
  }
  Controller recording(std::function<Outcome(const store::Key&, std::stop_token)> then) {
    Controller c;
    c.name = "test";
    c.sources = {{"jobs", own_key}};
    c.workers = 2;
    c.reconcile = [this, then](const store::Key& key, std::stop_token stop) {
      {
        std::lock_guard lock(mutex);
        seen.push_back(key.name);
      }
      return then(key, stop);
    };
    return c;
  }
};

TEST_F(ManagerTest, sees_what_is_there_at_the_start_and_each_change_after) {
  create("before");
  Manager manager(*store, clock);
  manager.add(recording([](auto&, auto) { return Outcome::done(); }));
  manager.start();
  EXPECT_TRUE(eventually([&] { return times("before") == 1; }));
  create("after");
  EXPECT_TRUE(eventually([&] { return times("after") == 1; }));
  EXPECT_TRUE(manager.stop(Duration(5000)));
}

TEST_F(ManagerTest, an_item_that_throws_never_stops_the_others_and_is_tried_again) {
  create("bad");
  create("worse");
  create("good");
  Manager manager(*store, clock);
  manager.add(recording([this](const store::Key& key, auto) -> Outcome {
    if (key.name == "bad" && times("bad") < 3) throw Error(Code::internal, "no luck");
    if (key.name == "worse" && times("worse") < 2) throw 42;
    return Outcome::done();
  }));
  manager.start();
  EXPECT_TRUE(eventually([&] { return times("good") == 1; }));
  EXPECT_TRUE(eventually([&] {
    clock.advance(Duration(20));
    return times("bad") == 3 && times("worse") == 2;
  }));
  EXPECT_EQ(manager.stats("test").errors, 3U);
  EXPECT_TRUE(manager.stop(Duration(5000)));
}

TEST_F(ManagerTest, a_conflict_is_tried_again_and_is_no_error) {
  create("a");
  Manager manager(*store, clock);
  manager.add(recording([this](const store::Key&, auto) -> Outcome {
    if (times("a") < 3) throw Error(Code::conflict, "somebody wrote");
    return Outcome::done();
  }));
  manager.start();
  EXPECT_TRUE(eventually([&] {
    clock.advance(Duration(20));
    return times("a") == 3;
  }));
  EXPECT_TRUE(eventually([&] { return manager.stats("test").conflicts == 2; }));
  EXPECT_EQ(manager.stats("test").errors, 0U);
}

TEST_F(ManagerTest, look_again_comes_back_after_its_time_and_terminal_does_not) {
  create("later");
  create("never");
  Manager manager(*store, clock);
  manager.add(recording([](const store::Key& key, auto) {
    return key.name == "later" ? Outcome::look_again(Duration(60'000))
                               : Outcome::terminal("the spec must change");
  }));
  manager.start();
  ASSERT_TRUE(eventually([&] { return times("later") == 1 && times("never") == 1; }));
  ASSERT_TRUE(eventually([&] { return clock.sleepers() >= 1; }));
  clock.advance(Duration(59'000));
  EXPECT_EQ(times("later"), 1U);
  EXPECT_TRUE(eventually([&] {
    clock.advance(Duration(1000));
    return times("later") >= 2;
  }));
  EXPECT_EQ(times("never"), 1U);
}

TEST_F(ManagerTest, what_comes_while_events_settle_is_one_reconcile) {
  create("a");
  Manager manager(*store, clock);
  auto settling = recording([](auto&, auto) { return Outcome::done(); });
  settling.settle = Duration(500);
  manager.add(std::move(settling));
  manager.start();
  std::atomic<int> delivered{0};
  auto watch = store->watch("jobs", store->revision(), [&](const store::Event&) { ++delivered; });
  for (int i = 0; i < 5; ++i) {
    json::Value object = store->find(key_of("a"))->parse();
    object["spec"].set("instruction", std::to_string(i));
    store->commit_one({store::Verb::update, key_of("a"), object, std::nullopt}, "test", "update");
  }
  ASSERT_TRUE(eventually([&] { return delivered == 5; }));
  clock.advance(Duration(499));
  EXPECT_EQ(times("a"), 0U);
  clock.advance(Duration(1));
  EXPECT_TRUE(eventually([&] { return times("a") == 1; }));
  clock.advance(Duration(10'000));
  EXPECT_TRUE(manager.stop(Duration(5000)));
  EXPECT_EQ(times("a"), 1U);
}

TEST_F(ManagerTest, a_reconcile_past_its_deadline_is_told_to_stop) {
  create("slow");
  Manager manager(*store, clock);
  std::atomic<bool> told{false};
  auto slow = recording([&](const store::Key&, std::stop_token stop) {
    told = !clock.sleep_until(clock.now() + Duration(3'600'000), stop);
    return Outcome::done();
  });
  slow.deadline = Duration(1000);
  manager.add(std::move(slow));
  manager.start();
  ASSERT_TRUE(eventually([&] { return times("slow") == 1; }));
  EXPECT_TRUE(eventually([&] {
    clock.advance(Duration(500));
    return told.load();
  }));
  EXPECT_TRUE(eventually([&] { return manager.stats("test").overdue == 1; }));
}

TEST_F(ManagerTest, everything_is_looked_at_again_on_a_timer) {
  create("a");
  Manager manager(*store, clock);
  auto controller = recording([](auto&, auto) { return Outcome::done(); });
  controller.resync = Duration(600'000);
  manager.add(std::move(controller));
  manager.start();
  ASSERT_TRUE(eventually([&] { return times("a") == 1; }));
  for (size_t round = 2; round <= 3; ++round) {
    ASSERT_TRUE(eventually([&] { return clock.sleepers() >= 1; }));
    clock.advance(Duration(600'000));
    EXPECT_TRUE(eventually([&] { return times("a") == round; }));
  }
}

TEST_F(ManagerTest, stop_is_bounded_when_a_reconcile_hangs) {
  create("hung");
  auto release = std::make_shared<std::atomic<bool>>(false);
  auto entered = std::make_shared<std::atomic<bool>>(false);
  auto manager = std::make_unique<Manager>(*store, clock);
  Controller c;
  c.name = "test";
  c.sources = {{"jobs", own_key}};
  c.reconcile = [release, entered](const store::Key&, std::stop_token) {
    *entered = true;
    while (!*release) std::this_thread::yield();
    return Outcome::done();
  };
  manager->add(std::move(c));
  manager->start();
  ASSERT_TRUE(eventually([&] { return entered->load(); }));
  auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(manager->stop(Duration(100)));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  *release = true;
}

TEST(Informer, lists_then_follows_and_is_quiet_after_stop) {
  auto store = store::make_memory_store();
  auto create = [&](const std::string& name) {
    store->commit_one({store::Verb::create, key_of(name), object_named(name), std::nullopt}, "test",
                      "create");
  };
  for (int i = 0; i < 2500; ++i) create("n" + std::to_string(i));
  std::mutex mutex;
  std::set<std::string> names;
  auto count = [&] {
    std::lock_guard lock(mutex);
    return names.size();
  };
  Informer informer(*store, "jobs", [&](const store::Event& event) {
    std::lock_guard lock(mutex);
    names.insert(event.record->key.name);
  });
  informer.start();
  EXPECT_EQ(count(), 2500U) << "all pages of the list";
  create("late");
  EXPECT_TRUE(eventually([&] { return count() == 2501; }));
  informer.stop();
  create("after");
  auto probe_seen = std::make_shared<std::atomic<bool>>(false);
  auto probe = store->watch("jobs", store->revision() - 1,
                            [probe_seen](const store::Event&) { *probe_seen = true; });
  EXPECT_TRUE(eventually([&] { return probe_seen->load(); }));
  EXPECT_EQ(count(), 2501U);
}

}  // namespace
}  // namespace umpteenth::controllers
