// A disk that fills up: a small file system of its own, which needs root.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "tests/store/git_fixture.h"

namespace umpteenth::store {
namespace {

class FullDiskTest : public GitStoreTest {
 protected:
  void SetUp() override {
    if (::mount("tmpfs", data().c_str(), "tmpfs", 0, "size=40m,mode=0700") != 0)
      GTEST_SKIP() << "cannot mount a tmpfs here: " << std::strerror(errno);
    mounted_ = true;
  }
  void TearDown() override {
    close();
    if (mounted_) ::umount2(data().c_str(), MNT_DETACH);
  }
  void fill() {
    Fd fd(::open((data() / "filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const std::string block(4096, 'x');
    while (::write(fd.get(), block.data(), block.size()) > 0) {
    }
  }
  void make_room() { std::filesystem::remove(data() / "filler"); }

  bool mounted_ = false;
};

TEST_F(FullDiskTest, writes_are_refused_and_resume) {
  open();
  create("a", "before");
  sealed();
  fill();
  // Some may still be acknowledged, by the journal that has its room already.
  std::map<std::string, std::string> acknowledged;
  std::string refused;
  ASSERT_TRUE(eventually([&] {
    const std::string name = "n" + std::to_string(acknowledged.size());
    try {
      create(name, name);
      acknowledged[name] = name;
      return false;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::unavailable) << e.message();
      refused = e.message();
      return true;
    }
  }));
  EXPECT_NE(refused.find("free some space"), std::string::npos) << refused;
  EXPECT_FALSE(store().health().ok);
  EXPECT_EQ(refusal([&] { store().row_put("s", "k", std::string(200'000, 'v')); }),
            Code::unavailable);
  EXPECT_EQ(refusal([&] { store().blob_put("o", std::string(200'000, 'b')); }), Code::unavailable);
  const Key run{"runs", "default", "r"};
  json::Value big = a_run("r");
  big.find("spec")->set("filler", std::string(200'000, 'f'));
  EXPECT_EQ(refusal([&] {
              store().commit_one({Verb::create, run, big, {}}, "system", "run");
            }),
            Code::unavailable);
  EXPECT_EQ(store().find(run), nullptr);
  EXPECT_EQ(instruction("a"), "before");  // reads go on

  make_room();
  ASSERT_TRUE(eventually([&] { return store().health().ok; }));
  create("after", "after");
  store().row_put("s", "k", "v");
  sealed();
  expect_sound();
  reopen();
  for (const auto& [name, text] : acknowledged) EXPECT_EQ(instruction(name), text);
  EXPECT_EQ(instruction("after"), "after");
  close();
  EXPECT_EQ(check_store(data()), std::vector<std::string>());
}

TEST_F(FullDiskTest, a_kill_on_a_full_disk_keeps_what_was_acknowledged) {
  open();
  create("a", "before");
  sealed();
  fill();
  size_t count = 0;
  ASSERT_TRUE(eventually([&] {
    try {
      create("n" + std::to_string(count));
      ++count;
      return false;
    } catch (const Error&) {
      return true;
    }
  }));
  // The end of the process while generations cannot be sealed.
  close();
  EXPECT_TRUE(std::filesystem::exists(repository() / "refs/heads/main.lock") || count == 0);
  make_room();
  open();
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(instruction("n" + std::to_string(i)), "count");
  sealed();
  expect_sound();
}

}  // namespace
}  // namespace umpteenth::store
