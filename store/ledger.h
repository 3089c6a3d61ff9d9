// Commits on top of the head, in memory: what the journal records and a generation's pack holds.
// For the writer's thread, and for recovery before that runs.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "store/folder_tree.h"
#include "store/journal.h"
#include "store/tables.h"

namespace umpteenth::store {

// Commits that become one pack together.
struct Generation {
  uint64_t number = 0;
  std::vector<PackObject> objects;
  std::vector<HistoryRow> history;
  std::map<Key, std::optional<ObjectRow>> rows;  // nullopt: removed
  Oid before, tip;                               // the ref's value before and after
  uint64_t revision = 0;                         // the newest one in it
  size_t commits = 0, bytes = 0;
  std::chrono::steady_clock::time_point opened;
};

class Ledger {
 public:
  Ledger(FolderTree tree, const Oid& head) : tree_(std::move(tree)), head_(head) {}

  struct Info {
    std::string actor, message;
    Oid base;
    // Where the commit stands for more changes than it writes: 0 = those of its changes.
    uint64_t first_revision = 0, last_revision = 0;
  };
  // The record to be made durable; blobs[i] is the file's id after changes[i].
  struct Added {
    JournalRecord record;
    std::vector<Oid> blobs;
    Oid commit;
    int64_t seconds = 0;
  };
  Added add(std::vector<JournalChange> changes, const Info& info);
  // Error(internal) where the record does not fit: its parent, or the tree that results.
  void replay(const JournalRecord& record);

  void open(uint64_t generation);
  bool is_open() const { return generation_.has_value(); }
  Generation& generation() { return *generation_; }
  const Generation& generation() const { return *generation_; }
  Generation close();

  // After someone else moved the ref.
  void move_to(FolderTree tree, const Oid& head);

  const Oid& head() const { return head_; }
  const FolderTree& tree() const { return tree_; }

 private:
  Oid apply(const JournalChange& change);
  void finish_commit(const std::string& text);

  FolderTree tree_;
  Oid head_;
  uint64_t sequence_ = 0;
  std::optional<Generation> generation_;
};

}  // namespace umpteenth::store
