#include <sys/stat.h>

#include <fcntl.h>

#include <atomic>
#include <ctime>

#include "tests/store/git_fixture.h"

namespace umpteenth::store {
namespace {

TEST_F(GitStoreTest, commits_are_plain_git) {
  open();
  create("a", "first\nsecond\n");
  update("a", "third");
  create("b");
  remove("b");
  sealed();
  expect_sound();
  const Shell log = git("log --format='%an|%s|%b' main");
  EXPECT_NE(log.output.find("admin|create jobs/default/a|Umpd-Actor: admin\nUmpd-Revision: 1"),
            std::string::npos)
      << log.output;
  EXPECT_EQ(git("rev-list --count main").output, "5\n");
  const Shell file = git("show main:default/jobs/a.yaml");
  EXPECT_NE(file.output.find("instruction: third"), std::string::npos) << file.output;
  EXPECT_EQ(file.output.find("resourceVersion"), std::string::npos);
  EXPECT_NE(git("show main:default/jobs/b.yaml").status, 0);
}

// A folder's last file goes in a generation of its own and in the one that made it: git refuses
// the short delta that leaves an empty tree.
TEST_F(GitStoreTest, the_last_file_of_a_folder_goes) {
  open();
  create("a");
  remove("a");
  sealed();
  expect_sound();
  create("a");
  create("b");
  sealed();
  remove("b");
  sealed();
  update("a", "again");
  remove("a");
  sealed();
  expect_sound();
  EXPECT_EQ(git("ls-tree -r main").output, "");
}

TEST_F(GitStoreTest, events_are_kept_in_the_database) {
  open();
  const Key key{"events", "default", "e1"};
  const json::Value event = json::parse(
      R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"e1","namespace":"default"},"reason":"Started"})");
  store().commit_one({Verb::create, key, event, {}}, "umpd", "event");
  reopen();
  ASSERT_TRUE(store().find(key));
  EXPECT_EQ(store().find(key)->parse().get_string("reason"), "Started");
}

TEST_F(GitStoreTest, status_is_not_in_git) {
  open();
  create("a");
  set_status(job_key("a"), json::Value::object({{"observedGeneration", 7}}));
  sealed();
  EXPECT_EQ(git("rev-list --count main").output, "2\n");
  EXPECT_EQ(git("grep observedGeneration main").output, "");
}

TEST_F(GitStoreTest, a_restart_keeps_everything) {
  open();
  const RecordPtr a = create("a");
  const RecordPtr with_status =
      set_status(job_key("a"), json::Value::object({{"observedGeneration", 7}}));
  const Key run{"runs", "default", "r"};
  const RecordPtr made = store().commit_one({Verb::create, run, a_run("r"), {}}, "system", "run");
  store().row_put("tokens", "t", "v");
  store().timeline_append("r", {"{}"});
  const std::string digest = store().blob_put("r", "artifact");
  const uint64_t revision = store().revision();
  reopen();
  EXPECT_EQ(store().find(job_key("a"))->json, with_status->json);
  EXPECT_EQ(store().find(run)->json, made->json);
  EXPECT_EQ(store().revision(), revision);
  EXPECT_EQ(store().row_get("tokens", "t"), "v");
  EXPECT_EQ(store().timeline_append("r", {"{}"}), 2U);
  EXPECT_EQ(store().blob_get(digest), "artifact");
  EXPECT_EQ(store().history(job_key("a"), 0).size(), 1U);
  EXPECT_GT(create("b")->revision, revision);
  EXPECT_EQ(refusal([&] { store().watch("jobs", revision - 1, [](const Event&) {}); }),
            Code::expired);
}

TEST_F(GitStoreTest, a_removed_objects_revision_is_not_given_again) {
  open();
  const Key run{"runs", "default", "r"};
  store().commit_one({Verb::create, run, a_run("r"), {}}, "system", "run");
  store().commit_one({Verb::remove, run, {}, {}}, "system", "run");
  const uint64_t revision = store().revision();
  reopen();
  EXPECT_EQ(create("a")->revision, revision + 1);
}

TEST_F(GitStoreTest, losing_the_database_loses_no_spec) {
  open();
  create("a", "one");
  update("a", "two");
  create("gone");
  remove("gone");
  Commit batch{
      {{Verb::create, job_key("z"), a_job("z"), {}}, {Verb::create, job_key("y"), a_job("y"), {}}},
      "ann",
      "two at once"};
  const auto both = store().commit(batch);
  set_status(job_key("a"), json::Value::object({{"observedGeneration", 7}}));
  store().commit_one({Verb::create, {"runs", "default", "r"}, a_run("r"), {}}, "system", "run");
  const uint64_t revision = store().revision();
  const auto before = store().history(job_key("a"), 0);
  close();
  for (const char* part : {"umpd.db", "umpd.db-wal", "umpd.db-shm"})
    std::filesystem::remove(data() / part);
  open();
  EXPECT_EQ(instruction("a"), "two");
  EXPECT_EQ(store().find(job_key("gone")), nullptr);
  EXPECT_EQ(store().find(job_key("a"))->parse().at_path({"metadata", "uid"}).as_string(), "uid-a");
  EXPECT_TRUE(store().find(job_key("a"))->parse().get("status").is_null());
  EXPECT_EQ(store().find({"runs", "default", "r"}), nullptr);
  EXPECT_EQ(store().find(job_key("z"))->revision, both[0]->revision);
  EXPECT_EQ(store().find(job_key("y"))->revision, both[1]->revision);
  const auto after = store().history(job_key("a"), 0);
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(after[0].commit, before[0].commit);
  EXPECT_EQ(after[0].revision, before[0].revision);
  EXPECT_EQ(after[1].actor, "admin");
  EXPECT_EQ(store().history(job_key("gone"), 0).front().verb, Verb::remove);
  EXPECT_GT(create("b")->revision, revision);
}

TEST_F(GitStoreTest, a_damaged_database_is_put_aside) {
  open();
  create("a");
  close();
  write_text(data() / "umpd.db", std::string(8192, 'x'));
  open();
  EXPECT_EQ(instruction("a"), "count");
  close();
  EXPECT_NE(shell("ls " + data().string()).output.find("umpd.db.broken-"), std::string::npos);
}

TEST_F(GitStoreTest, spec_and_status_in_one_change_survive_together) {
  open();
  create("a");
  json::Value object = store().find(job_key("a"))->parse();
  object.find("spec")->set("instruction", "new");
  object.set("status", json::Value::object({{"observedGeneration", 9}}));
  const RecordPtr both =
      store().commit_one({Verb::update, job_key("a"), object, {}}, "admin", "both");
  reopen();
  EXPECT_EQ(store().find(job_key("a"))->json, both->json);
}

TEST_F(GitStoreTest, large_folders_are_split_and_joined) {
  open();
  Commit many;
  many.actor = "admin";
  many.message = "many";
  for (int i = 0; i < 513; ++i) {
    const std::string name = "job-" + std::to_string(i);
    many.changes.push_back({Verb::create, job_key(name), a_job(name), {}});
  }
  store().commit(many);
  update("job-7", "changed");
  sealed();
  expect_sound();
  EXPECT_EQ(git("ls-tree -r --name-only main | wc -l").output, "513\n");
  EXPECT_NE(git("show main:default/jobs/job-7.yaml").status, 0);
  EXPECT_EQ(store().history(job_key("job-7"), 0).size(), 2U);
  reopen();
  EXPECT_EQ(store().list({"jobs", "", 0, ""}).items.size(), 513U);
  EXPECT_EQ(store()
                .object_at(job_key("job-7"), store().history(job_key("job-7"), 0)[1].commit)
                .at_path({"spec", "instruction"})
                .as_string(),
            "count");
  Commit fewer = many;
  fewer.changes.clear();
  for (int i = 200; i < 513; ++i)
    fewer.changes.push_back({Verb::remove, job_key("job-" + std::to_string(i)), {}, {}});
  store().commit(fewer);
  sealed();
  expect_sound();
  EXPECT_EQ(git("show main:default/jobs/job-7.yaml").status, 0);
  reopen();
  EXPECT_EQ(store().list({"jobs", "", 0, ""}).items.size(), 200U);
}

TEST_F(GitStoreTest, two_on_one_folder_refuse) {
  open();
  Options options;
  options.data_dir = data();
  try {
    open_store(options);
    FAIL() << "a second store opened";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("another umpd uses"), std::string::npos);
  }
}

TEST_F(GitStoreTest, refuses_what_cannot_be_a_path_or_has_two_storages) {
  open();
  for (const char* name : {"../x", ".git", "a/b", "_cluster", "a\nb", "a:b"})
    EXPECT_EQ(refusal([&] {
                store().commit_one({Verb::create, {"jobs", "default", name}, a_job(name), {}},
                                   "admin", "x");
              }),
              Code::bad_request)
        << name;
  EXPECT_EQ(refusal([&] {
              store().commit_one({Verb::create, {"nonsense", "", "x"}, a_job("x"), {}}, "a", "x");
            }),
            Code::bad_request);
  Commit mixed{{{Verb::create, job_key("a"), a_job("a"), {}},
                {Verb::create, {"runs", "default", "r"}, a_run("r"), {}}},
               "admin",
               "mixed"};
  EXPECT_EQ(refusal([&] { store().commit(mixed); }), Code::bad_request);
}

TEST_F(GitStoreTest, an_actor_cannot_forge_a_trailer) {
  open();
  store().commit_one({Verb::create, job_key("a"), a_job("a"), {}}, "eve <x>\nUmpd-Revision: 99",
                     "x\n\nUmpd-Actor: admin");
  sealed();
  expect_sound();
  EXPECT_EQ(git("log -1 --format=%b main").output, "Umpd-Actor: eve _x_\nUmpd-Revision: 1\n\n");
}

TEST_F(GitStoreTest, a_record_larger_than_a_journal_file_is_kept) {
  open();
  const std::string big(900'000, 'x');
  Commit batch;
  batch.actor = "admin";
  batch.message = "big";
  for (int i = 0; i < 5; ++i) {
    const std::string name = "big-" + std::to_string(i);
    batch.changes.push_back({Verb::create, job_key(name), a_job(name, big), {}});
  }
  store().commit(batch);
  create("small");
  reopen();
  EXPECT_EQ(instruction("big-4").size(), big.size());
  EXPECT_EQ(instruction("small"), "count");
  expect_sound();
}

TEST_F(GitStoreTest, a_foreign_lock_is_reported_and_recovered) {
  open();
  create("a");
  sealed();
  const auto lock = repository() / "refs/heads/main.lock";
  write_text(lock, "");
  EXPECT_EQ(refusal([&] { create("b"); }), Code::unavailable);
  EXPECT_FALSE(store().health().ok);
  EXPECT_NE(store().health().reason.find("main.lock"), std::string::npos);
  const Key run{"runs", "default", "r"};
  EXPECT_NO_THROW(store().commit_one({Verb::create, run, a_run("r"), {}}, "system", "run"));
  const timespec old[2] = {{std::time(nullptr) - 3600, 0}, {std::time(nullptr) - 3600, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, lock.c_str(), old, 0), 0);
  EXPECT_TRUE(eventually([&] { return store().health().ok; }));
  EXPECT_NO_THROW(create("b"));
}

TEST_F(GitStoreTest, stale_locks_at_start_are_removed) {
  open();
  create("a");
  close();
  const auto lock = repository() / "refs/heads/main.lock";
  write_text(lock, std::string(40, '0') + "\numpd holds this while writes are being sealed\n");
  open();
  EXPECT_TRUE(store().health().ok);
  EXPECT_NO_THROW(create("b"));
}

TEST_F(GitStoreTest, git_refuses_a_push_while_writes_are_unsealed) {
  open();
  create("a");
  make_clone();
  write_text(clone() / "README", "hello\n");
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) update("a", std::to_string(i));
  });
  const Shell pushed = push();
  stop = true;
  writer.join();
  EXPECT_NE(pushed.status, 0);
  sealed();
  expect_sound();
}

}  // namespace
}  // namespace umpteenth::store
