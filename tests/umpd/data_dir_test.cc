#include "cmd/umpd/data_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"

namespace umpteenth::umpd {
namespace {

std::string refusal(const std::filesystem::path& path) {
  try {
    DataDir d(path);
  } catch (const Error& e) {
    return e.message();
  }
  return "accepted";
}

mode_t mode_of(const std::filesystem::path& path) {
  struct stat st {};
  EXPECT_EQ(::stat(path.c_str(), &st), 0);
  return st.st_mode & 07777;
}

TEST(DataDir, is_made_for_its_owner_only_and_keeps_its_identity) {
  TempDir folder;
  const auto path = folder.path() / "a" / "data";
  std::string id, key;
  {
    DataDir d(path);
    id = d.instance_id();
    key = d.master_keys("").at(0);
    EXPECT_TRUE(d.made_key());
    EXPECT_GE(key.size(), 32u);
  }
  EXPECT_EQ(mode_of(path), 0700u);
  EXPECT_EQ(mode_of(path / "encryption.key"), 0600u);
  DataDir again(path);
  EXPECT_EQ(again.instance_id(), id);
  EXPECT_EQ(again.master_keys("").at(0), key);
  EXPECT_FALSE(again.made_key());
  // A configured key seals; what the generated one sealed still opens.
  EXPECT_EQ(again.master_keys("configured-key-0123"),
            (std::vector<std::string>{"configured-key-0123", key}));
}

TEST(DataDir, that_others_can_read_is_refused) {
  TempDir folder;
  const auto path = folder.path() / "data";
  ::mkdir(path.c_str(), 0755);
  ::chmod(path.c_str(), 0755);
  EXPECT_EQ(refusal(path),
            "app.data_dir " + path.string() +
                " has mode 0755: others can read it; it must be 0700 (chmod 700 it)");
}

TEST(DataDir, serves_one_umpd_at_a_time) {
  TempDir folder;
  const auto path = folder.path() / "data";
  DataDir first(path);
  EXPECT_EQ(refusal(path), "another umpd uses " + path.string());
}

}  // namespace
}  // namespace umpteenth::umpd
