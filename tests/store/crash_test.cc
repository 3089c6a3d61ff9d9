// kill -9 under load, and damage to whatever was not yet reported durable: nothing acknowledged is
// lost, nothing is half visible. UMPTEENTH_ALL=1 runs 200 rounds of each.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <map>
#include <random>
#include <sstream>

#include "store/tables.h"
#include "tests/store/git_fixture.h"
#include "tests/support/paths.h"

namespace umpteenth::store {
namespace {

struct Acknowledged {
  int n = -1;
  uint64_t revision = 0;
};

class CrashTest : public GitStoreTest {
 protected:
  int rounds(int in_ci) const { return std::getenv("UMPTEENTH_ALL") ? 200 : in_ci; }

  // Starts the writer, kills it some time after it is ready, and reads what it acknowledged.
  std::map<Key, Acknowledged> write_and_kill(int round, std::chrono::milliseconds after) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const std::string program = support::bin_dir() + "/store_writer";
    const std::string prefix = "r" + std::to_string(round);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl(program.c_str(), program.c_str(), data().c_str(), prefix.c_str(), "8", "20000",
              nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    std::string text;
    std::thread killer;
    char chunk[65536];
    for (ssize_t n = 0; (n = ::read(ends[0], chunk, sizeof chunk)) > 0;) {
      text.append(chunk, static_cast<size_t>(n));
      if (!killer.joinable())
        killer = std::thread([child, after] {
          std::this_thread::sleep_for(after);
          ::kill(child, SIGKILL);
        });
    }
    EXPECT_TRUE(killer.joinable()) << "the writer never became ready";
    if (killer.joinable()) killer.join();
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    return read_lines(text);
  }

  static std::map<Key, Acknowledged> read_lines(const std::string& text) {
    std::map<Key, Acknowledged> acknowledged;
    std::istringstream lines(text.substr(0, text.rfind('\n') + 1));
    std::string kind;
    while (lines >> kind) {
      if (kind == "ready") continue;
      Key key{kind, "default", ""};
      Acknowledged a;
      lines >> key.name >> a.n >> a.revision;
      if (key.name.ends_with("-right")) key.ns = "web";
      acknowledged[key] = a;
    }
    return acknowledged;
  }

  static std::string state_of(int n) {
    return n < 0 || n % 7 == 6 ? "(absent)" : std::to_string(n);
  }
  std::string visible(const Key& key) {
    const RecordPtr record = store().find(key);
    return record ? record->parse().at_path({"spec", "instruction"}).as_string() : "(absent)";
  }

  void expect_all(const std::map<Key, Acknowledged>& acknowledged) {
    for (const auto& [key, a] : acknowledged) {
      const std::string now = visible(key);
      // The write that was on its way may have been done without a word.
      EXPECT_TRUE(now == state_of(a.n) || now == state_of(a.n + 1))
          << to_string(key) << ": acknowledged " << a.n << ", found " << now;
      if (const RecordPtr record = store().find(key); record && now == state_of(a.n)) {
        EXPECT_EQ(record->revision, a.revision) << to_string(key);
        EXPECT_EQ(record->parse().at_path({"status", "seen"}).is_null(), a.n % 2 == 0)
            << record->json;
      }
      if (key.kind == "jobs") {
        bool in_history = false;
        for (const Revision& line : store().history(key, 0))
          in_history |= line.revision == a.revision;
        EXPECT_TRUE(in_history) << to_string(key) << " revision " << a.revision;
      }
      EXPECT_GE(store().revision(), a.revision);
    }
    // Both halves of a pair, or none.
    for (const RecordPtr& record : store().list({"jobs", "default", 0, ""}).items) {
      const std::string& name = record->key.name;
      if (!name.ends_with("-left")) continue;
      const Key right{"jobs", "web", name.substr(0, name.size() - 4) + "right"};
      EXPECT_EQ(visible(record->key), visible(right)) << name;
    }
  }

  void remember(const std::map<Key, Acknowledged>& acknowledged) {
    for (const auto& [key, a] : acknowledged) settled_[key] = visible(key);
  }
  void expect_settled() {
    for (const auto& [key, state] : settled_) EXPECT_EQ(visible(key), state) << to_string(key);
  }

  std::mt19937 random_{20261130};
  std::map<Key, std::string> settled_;  // of rounds before
};

TEST_F(CrashTest, kill_9_under_load_loses_nothing) {
  size_t total = 0;
  for (int round = 0; round < rounds(25) && !HasFailure(); ++round) {
    const auto after = std::chrono::milliseconds(random_() % 120);
    const auto acknowledged = write_and_kill(round, after);
    total += acknowledged.size();
    open();
    expect_all(acknowledged);
    expect_settled();
    remember(acknowledged);
    close();
    expect_sound();
    EXPECT_EQ(check_store(data()), std::vector<std::string>()) << "round " << round;
  }
  EXPECT_GT(total, 0U);
}

TEST_F(CrashTest, damage_to_what_was_not_yet_durable_loses_nothing) {
  for (int round = 0; round < rounds(10) && !HasFailure(); ++round) {
    const auto acknowledged = write_and_kill(round, std::chrono::milliseconds(random_() % 400));
    std::set<std::string> durable;
    {
      Db db(data() / "umpd.db");
      for (const PackRow& row : read_packs(db)) durable.insert(row.name);
    }
    for (const auto& entry : std::filesystem::directory_iterator(repository() / "objects/pack")) {
      const auto& path = entry.path();
      if (durable.contains(path.stem().string()) || entry.file_size() == 0) continue;
      switch (random_() % 4) {
        case 0:
          std::filesystem::resize_file(path, random_() % entry.file_size());
          break;
        case 1:
          std::filesystem::resize_file(path, 0);
          break;
        case 2:
          std::filesystem::remove(path);
          break;
        case 3: {
          std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
          file.seekp(static_cast<std::streamoff>(random_() % entry.file_size()));
          file << std::string(64, '\0');
          break;
        }
      }
    }
    if (random_() % 2 == 0) write_text(repository() / "refs/heads/main", "");
    open();
    expect_all(acknowledged);
    expect_settled();
    remember(acknowledged);
    close();
    expect_sound();
  }
}

}  // namespace
}  // namespace umpteenth::store
