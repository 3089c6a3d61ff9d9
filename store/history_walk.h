// What commits say, read back from git: for rows that SQLite lost or had not yet.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "store/repository.h"
#include "store/tables.h"

namespace umpteenth::store {

struct Derived {
  std::map<Key, uint64_t> revisions;  // of files whose newest version umpd wrote
  std::set<Key> foreign;              // files whose newest version, or removal, someone else made
  std::map<Key, Oid> last_ours;       // of foreign ones: the newest commit of ours with the file
  std::vector<HistoryRow> history;
  uint64_t newest = 0;  // the highest revision seen
};
// From tip back to `known` (exclusive), or to the first commit.
Derived walk_history(ObjectReader& reader, const Oid& tip, const std::optional<Oid>& known);

struct FileChange {
  std::optional<Oid> before, after;
};
// By key: a file that only moved between a flat and a split folder has not changed.
std::map<Key, FileChange> changed_files(ObjectReader& reader, const Oid& old_tree,
                                        const Oid& new_tree);

}  // namespace umpteenth::store
