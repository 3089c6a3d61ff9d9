#include "store/pack.h"

#include "store/folder_tree.h"
#include "store/keeper.h"
#include "store/tables.h"
#include "tests/store/git_fixture.h"

namespace umpteenth::store {
namespace {

PackObject blob(const std::string& text) {
  PackObject object;
  object.data = text;
  object.id = hash_object(ObjectType::blob, text);
  return object;
}

struct Bare {
  TempDir folder;
  std::filesystem::path repository = folder.path() / "r.git";
  Bare() { ensure_repository(repository); }
  std::filesystem::path packs() const { return repository / "objects/pack"; }
  Shell git(const std::string& arguments) {
    return shell("git --git-dir=" + repository.string() + " " + arguments);
  }
};

TEST(Pack, git_reads_what_is_written) {
  Bare bare;
  std::string large;
  for (int i = 0; i < 200'000; ++i) large += std::to_string(i);
  const Pack pack = build_pack({blob(""), blob("x"), blob(large), blob("x")});
  EXPECT_EQ(pack.entries.size(), 3U);
  write_pack(bare.packs(), pack);
  EXPECT_EQ(check_pack(bare.packs() / (pack.name() + ".pack")), PackState::good);
  EXPECT_EQ(bare.git("cat-file blob " + blob(large).id.hex()).output, large);
  EXPECT_EQ(bare.git("fsck --full --strict").output.find("error"), std::string::npos);
  EXPECT_EQ(bare.git("verify-pack " + (bare.packs() / (pack.name() + ".idx")).string()).status, 0);
}

TEST(Pack, damage_is_seen) {
  Bare bare;
  const Pack pack = build_pack({blob("content")});
  write_pack(bare.packs(), pack);
  const auto file = bare.packs() / (pack.name() + ".pack");
  const auto index = bare.packs() / (pack.name() + ".idx");
  std::filesystem::permissions(index, std::filesystem::perms::owner_all);
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  const std::string whole_index = read_file(index);
  std::ofstream(index, std::ios::trunc) << whole_index.substr(0, whole_index.size() - 1);
  EXPECT_EQ(check_pack(file), PackState::index_broken);
  rebuild_index(bare.repository, file);
  EXPECT_EQ(check_pack(file), PackState::good);
  EXPECT_EQ(bare.git("cat-file blob " + blob("content").id.hex()).output, "content");
  std::filesystem::resize_file(file, 20);
  EXPECT_EQ(check_pack(file), PackState::broken);
  std::filesystem::resize_file(file, 0);
  EXPECT_EQ(check_pack(file), PackState::broken);
}

TEST(Pack, folders_with_deltas_are_what_git_would_make) {
  Bare bare;
  FolderTree tree;
  std::vector<PackObject> objects;
  Oid root;
  std::map<std::string, std::string> files;
  for (int i = 0; i < 1400; ++i) {
    const std::string name = "j" + std::to_string(i * 7919 % 1000);
    const Key key{"jobs", i % 20 == 0 ? "" : "default", name};
    const std::string path = (key.ns.empty() ? "_cluster" : "default") + std::string("/") + name;
    if (i % 5 == 4) {
      tree.erase(key);
      files.erase(path);
    } else {
      objects.push_back(blob(std::to_string(i)));
      tree.put(key, objects.back().id);
      files[path] = std::to_string(i);
    }
    root = tree.finish(1, objects);
  }
  size_t deltas = 0;
  for (const PackObject& object : objects) deltas += object.delta ? 1 : 0;
  EXPECT_GT(deltas, 1000U);
  write_pack(bare.packs(), build_pack(objects));
  const Shell fsck = bare.git("fsck --full --strict --no-dangling");
  EXPECT_EQ(fsck.status, 0) << fsck.output;
  EXPECT_EQ(bare.git("ls-tree -r --name-only " + root.hex() + " | wc -l").output,
            std::to_string(files.size()) + "\n");
  // More than a folder holds flat.
  EXPECT_NE(bare.git("ls-tree " + root.hex() + ":default/jobs").output.find("tree"),
            std::string::npos);
  ObjectReader reader(bare.repository);
  FolderTree again(root, [&](const Oid& id) { return reader.get(id, "tree"); });
  size_t seen = 0;
  again.for_each([&](const Key& key, const FolderTree::File& file) {
    ++seen;
    const std::string path =
        (key.ns.empty() ? "_cluster" : "default") + std::string("/") + key.name;
    EXPECT_EQ(reader.get(file.id, "file"), files[path]) << path;
  });
  EXPECT_EQ(seen, files.size());
}

TEST(Pack, joined_packs_hold_all_and_old_ones_go_later) {
  Bare bare;
  Database database(bare.folder.path() / "umpd.db");
  for (int i = 0; i < 64; ++i) {
    const Pack pack = build_pack({blob("shared"), blob("own " + std::to_string(i))});
    write_pack(bare.packs(), pack);
    database.write([&](Db& db) { put_pack(db, {pack.name(), true, false}); });
  }
  EXPECT_EQ(compact_packs(bare.repository, database), 64U);
  EXPECT_EQ(compact_packs(bare.repository, database), 0U);
  remove_retired(bare.repository, database, std::chrono::seconds(3600));
  EXPECT_EQ(shell("ls " + bare.packs().string() + "/*.pack | wc -l").output, "66\n");
  remove_retired(bare.repository, database, std::chrono::seconds(0));
  EXPECT_EQ(shell("ls " + bare.packs().string() + "/*.pack | wc -l").output, "2\n");
  for (const int i : {0, 31, 63})
    EXPECT_EQ(bare.git("cat-file blob " + blob("own " + std::to_string(i)).id.hex()).output,
              "own " + std::to_string(i));
  EXPECT_EQ(bare.git("fsck --full").status, 0);
}

}  // namespace
}  // namespace umpteenth::store
