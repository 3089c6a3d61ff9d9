// A data folder, the store on it, and Debian's git beside.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/fd.h"
#include "store/open.h"

namespace umpteenth::store {

inline json::Value a_job(const std::string& name, const std::string& instruction = "count") {
  return json::Value::object(
      {{"apiVersion", "umpteenth.dev/v1alpha1"},
       {"kind", "Job"},
       {"metadata",
        json::Value::object({{"name", name}, {"namespace", "default"}, {"uid", "uid-" + name}})},
       {"spec", json::Value::object({{"instruction", instruction}})}});
}
inline json::Value a_run(const std::string& name) {
  json::Value run = a_job(name);
  run.set("kind", "Run");
  return run;
}
inline Key job_key(const std::string& name) { return {"jobs", "default", name}; }

struct Shell {
  int status = 0;
  std::string output;
};
inline Shell shell(const std::string& command) {
  Shell result;
  FILE* pipe = ::popen(("{ " + command + " ; } 2>&1").c_str(), "r");
  char chunk[4096];
  size_t n = 0;
  while ((n = std::fread(chunk, 1, sizeof chunk, pipe)) > 0) result.output.append(chunk, n);
  result.status = ::pclose(pipe);
  return result;
}

inline bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

class GitStoreTest : public testing::Test {
 protected:
  const std::filesystem::path& data() const { return folder_.path(); }
  std::filesystem::path repository() const { return data() / "store.git"; }
  std::filesystem::path clone() const { return clones_.path() / "clone"; }

  void open() {
    Options options;
    options.data_dir = data();
    options.admit_edit = admit;
    store_ = open_store(options);
  }
  void close() { store_.reset(); }
  void reopen() {
    close();
    open();
  }
  Store& store() { return *store_; }

  RecordPtr create(const std::string& name, const std::string& instruction = "count") {
    return store().commit_one({Verb::create, job_key(name), a_job(name, instruction), {}}, "admin",
                              "create jobs/default/" + name);
  }
  RecordPtr update(const std::string& name, const std::string& instruction) {
    json::Value object = store().find(job_key(name))->parse();
    object.find("spec")->set("instruction", instruction);
    return store().commit_one({Verb::update, job_key(name), object, {}}, "admin", "update " + name);
  }
  void remove(const std::string& name) {
    store().commit_one({Verb::remove, job_key(name), {}, {}}, "admin", "remove " + name);
  }
  RecordPtr set_status(const Key& key, json::Value status) {
    json::Value object = store().find(key)->parse();
    object.set("status", std::move(status));
    return store().commit_one({Verb::update, key, object, {}}, "system:test", "status");
  }
  std::string instruction(const std::string& name) {
    const RecordPtr record = store().find(job_key(name));
    return record ? record->parse().at_path({"spec", "instruction"}).as_string() : "(absent)";
  }
  json::Value condition(const std::string& name, const std::string& type) {
    const RecordPtr record = store().find(job_key(name));
    if (!record) return {};
    for (const json::Value& c : record->parse().at_path({"status", "conditions"}).is_array()
                                    ? record->parse().at_path({"status", "conditions"}).items()
                                    : json::Array())
      if (c.get_string("type") == type) return c;
    return {};
  }

  Shell git(const std::string& arguments) {
    return shell("git --git-dir=" + repository().string() + " " + arguments);
  }
  // Waits until what is acknowledged is in plain git.
  void sealed() {
    EXPECT_TRUE(eventually(
        [&] { return !std::filesystem::exists(repository() / "refs/heads/main.lock"); }));
  }
  void expect_sound() {
    const Shell fsck = git("fsck --full --strict");
    EXPECT_EQ(fsck.status, 0) << fsck.output;
    EXPECT_EQ(fsck.output.find("error"), std::string::npos) << fsck.output;
    EXPECT_EQ(fsck.output.find("missing"), std::string::npos) << fsck.output;
  }
  void make_clone() {
    sealed();
    const Shell cloned = shell("git clone -q " + repository().string() + " " + clone().string());
    ASSERT_EQ(cloned.status, 0) << cloned.output;
    shell("git -C " + clone().string() + " config user.name Ann && git -C " + clone().string() +
          " config user.email ann@example.com");
  }
  Shell push(const std::string& message = "an edit") {
    const std::string in = "git -C " + clone().string() + " ";
    const Shell made = shell(in + "add -A && " + in + "commit -q -m '" + message + "'");
    return made.status == 0 ? push_commits() : made;
  }
  Shell push_commits() { return shell("git -C " + clone().string() + " push -q origin HEAD:main"); }
  std::filesystem::path file_of(const std::string& name) const {
    return clone() / "default/jobs" / (name + ".yaml");
  }
  static void write_text(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::function<json::Value(const Key&, json::Value, const RecordPtr&)> admit =
      [](const Key&, json::Value object, const RecordPtr&) { return object; };

 private:
  TempDir folder_, clones_;
  std::unique_ptr<Store> store_;
};

inline Code refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return Code::not_implemented;
}

}  // namespace umpteenth::store
