// Edits by plain git: a clone and a push, or a commit made in the repository.
#include "apis/object.h"
#include "tests/store/git_fixture.h"

namespace umpteenth::store {
namespace {

class EditsTest : public GitStoreTest {
 protected:
  EditsTest() {
    // As umpd's admission does: uid and generation are completed, a rule refuses.
    admit = [](const Key& key, json::Value object, const RecordPtr& old) {
      if (!object.at_path({"spec", "instruction"}).is_string())
        throw Error(Code::invalid, "Job is invalid",
                    {{"spec.instruction", "Required value", "FieldValueRequired"}});
      if (object.at_path({"metadata", "uid"}).is_null())
        object["metadata"].set("uid", "made-for-" + key.name);
      if (old && !(old->parse().get("spec") == object.get("spec")))
        object["metadata"].set("generation", apis::generation_of(old->parse()) + 1);
      return object;
    };
  }
  std::string yaml(const std::string& name, const std::string& spec) {
    return "apiVersion: umpteenth.dev/v1alpha1\nkind: Job\nmetadata:\n  name: " + name +
           "\nspec:\n" + spec;
  }
  // As a person does it: once more while the lock that umpd holds over unsealed commits refuses it.
  Shell push(const std::string& message = "an edit") {
    Shell pushed = GitStoreTest::push(message);
    eventually([&] {
      if (pushed.output.find("main.lock") == std::string::npos) return true;
      pushed = push_commits();
      return false;
    });
    return pushed;
  }
  void pull() {
    const Shell pulled = shell("git -C " + clone().string() + " pull -q --rebase origin main");
    ASSERT_EQ(pulled.status, 0) << pulled.output;
  }
};

TEST_F(EditsTest, a_pushed_file_becomes_an_object_and_is_completed) {
  open();
  create("a");
  make_clone();
  const uint64_t before = store().revision();
  write_text(file_of("b"), yaml("b", "  instruction: pushed\n"));
  const Shell pushed = push();
  ASSERT_EQ(pushed.status, 0) << pushed.output;
  ASSERT_TRUE(eventually([&] { return instruction("b") == "pushed"; }));
  const RecordPtr b = store().find(job_key("b"));
  EXPECT_GT(b->revision, before);
  EXPECT_EQ(b->parse().at_path({"metadata", "uid"}).as_string(), "made-for-b");
  EXPECT_EQ(b->parse().at_path({"metadata", "namespace"}).as_string(), "default");
  sealed();
  expect_sound();
  EXPECT_NE(git("show main:default/jobs/b.yaml").output.find("made-for-b"), std::string::npos);
  EXPECT_EQ(store().history(job_key("b"), 0).front().actor, "system:git");
  EXPECT_EQ(store()
                .object_at(job_key("b"), std::to_string(b->revision))
                .at_path({"spec", "instruction"})
                .as_string(),
            "pushed");
  const std::string json = b->json;
  reopen();
  EXPECT_EQ(store().find(job_key("b"))->json, json);
  update("b", "by api");
  EXPECT_EQ(instruction("b"), "by api");
}

TEST_F(EditsTest, watchers_hear_of_edits_and_removals) {
  open();
  create("a");
  create("b");
  make_clone();
  std::mutex mutex;
  std::vector<Event> events;
  const auto subscription = store().watch("jobs", store().revision(), [&](const Event& event) {
    std::lock_guard lock(mutex);
    events.push_back(event);
  });
  std::filesystem::remove(file_of("a"));
  shell("sed -i 's/instruction: count/instruction: edited/' " + file_of("b").string());
  ASSERT_EQ(push().status, 0);
  ASSERT_TRUE(eventually([&] {
    std::lock_guard lock(mutex);
    return events.size() == 2;
  }));
  EXPECT_EQ(events[0].type, Event::Type::removed);
  EXPECT_EQ(events[0].record->key.name, "a");
  EXPECT_EQ(events[1].type, Event::Type::modified);
  EXPECT_EQ(instruction("b"), "edited");
  reopen();
  EXPECT_EQ(instruction("a"), "(absent)");
}

TEST_F(EditsTest, an_invalid_file_leaves_the_last_valid_version_in_force) {
  open();
  create("a", "valid");
  make_clone();
  const std::string good = read_file(file_of("a"));
  write_text(file_of("a"),
             "apiVersion: umpteenth.dev/v1alpha1\nkind: Job\nmetadata: {name: a}\n"
             "spec:\n  instruction: [3\n");
  ASSERT_EQ(push().status, 0);
  ASSERT_TRUE(
      eventually([&] { return condition("a", "Declared").get_string("status") == "False"; }));
  EXPECT_EQ(instruction("a"), "valid");
  const std::string broken =
      shell("git -C " + clone().string() + " rev-parse HEAD").output.substr(0, 12);
  const std::string message = condition("a", "Declared").get_string("message");
  EXPECT_EQ(condition("a", "Declared").get_string("reason"), "InvalidFile");
  EXPECT_NE(message.find(broken), std::string::npos) << message;
  EXPECT_NE(message.find("line "), std::string::npos) << message;
  EXPECT_NE(store().health().reason.find("default/jobs/a.yaml"), std::string::npos);

  // It stays so over restarts and status writes, and without umpd.db.
  set_status(job_key("a"), json::Value::object({{"observedGeneration", 1}}));
  EXPECT_EQ(condition("a", "Declared").get_string("status"), "False");
  reopen();
  EXPECT_EQ(instruction("a"), "valid");
  EXPECT_EQ(condition("a", "Declared").get_string("status"), "False");
  close();
  std::filesystem::remove(data() / "umpd.db");
  open();
  EXPECT_TRUE(
      eventually([&] { return condition("a", "Declared").get_string("status") == "False"; }));
  EXPECT_EQ(instruction("a"), "valid");

  // The next push stands on the broken one, with no commit of ours in between.
  write_text(file_of("a"), good + "\n");
  shell("sed -i 's/instruction: valid/instruction: healed/' " + file_of("a").string());
  const Shell pushed = push();
  ASSERT_EQ(pushed.status, 0) << pushed.output;
  ASSERT_TRUE(eventually([&] { return instruction("a") == "healed"; }));
  EXPECT_EQ(condition("a", "Declared").get_string("status"), "True");
  sealed();
  expect_sound();
}

TEST_F(EditsTest, a_broken_rule_names_its_line_and_a_write_by_api_heals) {
  open();
  create("a", "valid");
  make_clone();
  write_text(file_of("a"), "# ours\n" + yaml("a", "  limits: {}\n  instruction: 3\n"));
  write_text(file_of("new"), yaml("other-name", "  instruction: x\n"));
  ASSERT_EQ(push().status, 0);
  ASSERT_TRUE(
      eventually([&] { return condition("a", "Declared").get_string("status") == "False"; }));
  EXPECT_NE(condition("a", "Declared")
                .get_string("message")
                .find("line 8: spec.instruction: Required value"),
            std::string::npos)
      << condition("a", "Declared").get_string("message");
  EXPECT_EQ(store().find(job_key("new")), nullptr);
  update("a", "again");
  EXPECT_EQ(condition("a", "Declared").get_string("status"), "True");
  sealed();
  EXPECT_NE(git("show main:default/jobs/a.yaml").output.find("again"), std::string::npos);
  const std::string json = store().find(job_key("a"))->json;
  reopen();
  EXPECT_EQ(store().find(job_key("a"))->json, json);
}

TEST_F(EditsTest, edits_made_while_umpd_is_down_are_taken_over_at_start) {
  open();
  create("a", "old");
  make_clone();
  close();
  shell("sed -i 's/instruction: old/instruction: new/' " + file_of("a").string());
  // A forged trailer makes it no commit of umpd's.
  ASSERT_EQ(push("x\n\nUmpd-Actor: admin\nUmpd-Revision: 500").status, 0);
  admit = [](const Key&, json::Value object, const RecordPtr&) {
    object["metadata"].set("labels", json::Value::object({{"seen", "yes"}}));
    return object;
  };
  open();
  EXPECT_EQ(instruction("a"), "new");
  EXPECT_EQ(store().find(job_key("a"))->parse().at_path({"metadata", "labels", "seen"}).as_string(),
            "yes");
  sealed();
  expect_sound();
}

TEST_F(EditsTest, removing_the_file_of_an_object_with_finalizers_begins_its_deletion) {
  open();
  json::Value object = a_job("a");
  object["metadata"].set("finalizers", json::Value::strings({"umpteenth.dev/runs"}));
  store().commit_one({Verb::create, job_key("a"), object, {}}, "admin", "create");
  make_clone();
  std::filesystem::remove(file_of("a"));
  ASSERT_EQ(push().status, 0);
  ASSERT_TRUE(eventually([&] {
    const RecordPtr record = store().find(job_key("a"));
    return record && apis::deleting(record->parse());
  }));
  sealed();
  EXPECT_EQ(git("show main:default/jobs/a.yaml").status, 0);
}

TEST_F(EditsTest, a_ref_without_acknowledged_writes_is_put_back_and_kept_aside) {
  open();
  create("a");
  sealed();
  create("b");
  sealed();
  const std::string head = git("rev-parse main").output;
  const Shell moved = git("update-ref refs/heads/main main~1");
  ASSERT_EQ(moved.status, 0) << moved.output;
  EXPECT_TRUE(eventually([&] { return git("rev-parse main").output == head; }));
  EXPECT_NE(git("for-each-ref refs/umpd/recovered").output, "");
  EXPECT_EQ(instruction("b"), "count");
}

// A value in an object of the repository could not be taken out of it again.
TEST_F(EditsTest, a_push_with_clear_values_of_a_secret_is_refused_before_git_keeps_it) {
  open();
  create("a");
  make_clone();
  const std::string value = "clear-value-4711", head = "apiVersion: umpteenth.dev/v1alpha1\n";
  const std::vector<std::pair<std::string, std::string>> ways = {
      {"default/secrets/s.yaml",
       head + "kind: Secret\nmetadata: {name: s}\nspec:\n  stringData:\n    value: " + value +
           "\n"},
      {"default/secrets/s.yaml",
       head + "kind: \"Secret\"\nspec: {\"stringData\": {\"value\": \"" + value + "\"}}\n"},
      {"notes/any name.json",
       R"({"kind":"Secret","metadata":{"name":"s"},"spec":{"stringData":{"value":")" + value +
           R"("}}})"}};
  const std::string in = "git -C " + clone().string() + " ";
  for (const auto& [path, text] : ways) {
    write_text(clone() / path, text);
    const Shell pushed = push();
    EXPECT_NE(pushed.status, 0);
    EXPECT_NE(pushed.output.find(path + ": spec.stringData: Forbidden"), std::string::npos)
        << pushed.output;
    // Removed again by a second commit it would still be in the first.
    std::filesystem::remove(clone() / path);
    EXPECT_NE(push().status, 0) << path;
    EXPECT_EQ(shell(in + "reset -q --hard origin/main").status, 0);
  }
  sealed();
  EXPECT_EQ(git("cat-file --batch-all-objects --batch | grep -ac " + value).output, "0\n");
  EXPECT_EQ(shell("grep -rac " + value + " " + data().string() + " | grep -v ':0$'").output, "");
  EXPECT_EQ(store().find({"secrets", "default", "s"}), nullptr);

  // What umpd itself writes may be edited and pushed.
  write_text(clone() / "default/secrets/t.yaml",
             head +
                 "kind: Secret\nmetadata:\n  name: t\n  annotations:\n"
                 "    kubectl.kubernetes.io/last-applied-configuration: "
                 "'{\"spec\":{\"stringData\":{\"a\":\"sealed\",\"b\":\"sealed\"}}}'\n"
                 "spec:\n  instruction: x\n  sealedData: {a: v1.k.x}\n");
  write_text(clone() / "README.md", "Values of a Secret go into stringData.\n");
  const Shell pushed = push();
  EXPECT_EQ(pushed.status, 0) << pushed.output;
}

TEST_F(EditsTest, files_that_are_no_objects_stay) {
  open();
  create("a");
  make_clone();
  write_text(clone() / "README.md", "ours\n");
  write_text(clone() / "default/jobs/notes.txt", "ours\n");
  ASSERT_EQ(push().status, 0);
  pull();
  update("a", "changed");
  sealed();
  EXPECT_EQ(git("show main:README.md").output, "ours\n");
  EXPECT_EQ(git("show main:default/jobs/notes.txt").output, "ours\n");
  expect_sound();
}

}  // namespace
}  // namespace umpteenth::store
