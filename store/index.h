// All current records in memory, in order of kind, ns, name, with lists that stay at one revision
// over their pages. Thread-safe.
#pragma once

#include <chrono>
#include <list>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <vector>

#include "store/store.h"

namespace umpteenth::store {

class Index {
 public:
  RecordPtr find(const Key& key) const;
  Page list(const Query& query) const;
  uint64_t revision() const;
  size_t size() const;

  struct Update {
    Verb verb;
    RecordPtr record;
  };
  // Shown to readers all at once, together with the new revision.
  void apply(const std::vector<Update>& updates, uint64_t revision);

 private:
  struct ByKey {
    using is_transparent = void;
    bool operator()(const RecordPtr& a, const RecordPtr& b) const { return a->key < b->key; }
    bool operator()(const RecordPtr& a, const Key& b) const { return a->key < b; }
    bool operator()(const Key& a, const RecordPtr& b) const { return a < b->key; }
  };
  // What a list in pages has still to show; shared by all lists of that range and revision.
  struct Snapshot {
    std::string kind, ns;
    uint64_t revision;
    std::vector<RecordPtr> items;
    std::chrono::steady_clock::time_point used;
  };

  std::vector<RecordPtr> range(const std::string& kind, const std::string& ns, size_t limit,
                               size_t& total) const;
  Page next_page(const Query& query) const;
  void keep(Snapshot snapshot) const;
  void drop_old_snapshots() const;

  mutable std::shared_mutex mutex_;
  std::set<RecordPtr, ByKey> records_;
  uint64_t revision_ = 0;

  mutable std::mutex snapshots_mutex_;
  mutable std::list<Snapshot> snapshots_;  // least recently used first
};

}  // namespace umpteenth::store
