// The repository's current folders in memory, as git's raw tree bytes: a write patches one entry a
// level and hashes those levels again. What is not ours (other files and folders) stays untouched.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/git_object.h"
#include "store/store.h"

namespace umpteenth::store {

// One folder: entries in git's order, sub-folders that we look into.
class Folder {
 public:
  Folder() = default;
  explicit Folder(std::string raw, Oid id);  // Error(internal) where it is not a tree

  struct Entry {
    std::string_view mode, name;
    Oid id;
    bool folder() const { return mode == "40000"; }
    bool file() const { return mode.starts_with("100"); }
  };
  size_t size() const { return starts_.size(); }
  size_t files() const { return files_; }
  Entry entry(size_t i) const;
  std::optional<Entry> find(std::string_view name) const;
  void set(std::string_view name, std::string_view mode, const Oid& id);
  bool erase(std::string_view name);

  Folder* child(std::string_view name);
  Folder& make_child(std::string_view name);
  Folder& adopt_child(std::string_view name, std::unique_ptr<Folder> child);
  std::map<std::string, std::unique_ptr<Folder>, std::less<>>& children() { return children_; }
  const std::map<std::string, std::unique_ptr<Folder>, std::less<>>& children() const {
    return children_;
  }
  void mark(std::string_view child) { dirty_.insert(std::string(child)); }

  // Hashes what changed, bottom up, and hands out the new trees; empty sub-folders go.
  Oid finish(uint64_t generation, std::vector<PackObject>& out);

 private:
  struct Edit {
    size_t offset = 0, removed = 0;
    std::string inserted;
  };
  size_t position(std::string_view name, bool folder, bool& found) const;
  void splice(size_t offset, size_t removed, std::string_view inserted);
  void emit(uint64_t generation, const Oid& id, std::vector<PackObject>& out);

  std::string raw_;
  std::vector<uint32_t> starts_;
  size_t files_ = 0;
  std::map<std::string, std::unique_ptr<Folder>, std::less<>> children_;
  std::set<std::string> dirty_;  // children that changed
  Oid id_;
  size_t base_size_ = 0;  // of the version handed out last
  size_t edits_ = 0;      // since then
  Edit edit_;
  uint64_t generation_ = 0;
  int depth_ = 0;  // deltas on top of the last whole tree in this generation
};

class FolderTree {
 public:
  using ReadTree = std::function<std::string(const Oid&)>;
  FolderTree() = default;
  FolderTree(const Oid& root, const ReadTree& read);

  void put(const Key& key, const Oid& blob);
  bool erase(const Key& key);
  std::optional<Oid> find(const Key& key) const;
  // Splits and joins folders, then hashes: the root tree's id. The same changes on the same tree
  // give the same id, which is what lets a replay check itself.
  Oid finish(uint64_t generation, std::vector<PackObject>& out);

  struct File {
    Oid id;
    bool regular = true;
  };
  void for_each(const std::function<void(Key, const File&)>& visit) const;

 private:
  Folder* find_folder(const Key& key) const;
  void settle(Folder& folder);

  mutable Folder root_;
  std::set<std::pair<std::string, std::string>> resized_;  // workspace folder, plural
};

}  // namespace umpteenth::store
