#include "store/history_walk.h"

#include "store/layout.h"

namespace umpteenth::store {
namespace {

class Walk {
 public:
  Walk(ObjectReader& reader, Derived& derived) : reader_(reader), derived_(derived) {}

  // The commit that umpd's own history has before this one.
  std::optional<Oid> visit(const Oid& id) {
    const ParsedCommit commit = reader_.commit(id);
    if (!commit.parent) return std::nullopt;
    const Oid parent_tree = reader_.commit(*commit.parent).tree;
    if (!commit.ours()) {
      mark_foreign(changed_files(reader_, parent_tree, commit.tree));
      return commit.parent;
    }
    const auto written = changed_files(reader_, parent_tree, commit.tree);
    if (!commit.base) {
      mark_ours(id, commit, written, written);
      return commit.parent;
    }
    const Oid base_tree = reader_.commit(*commit.base).tree;
    mark_ours(id, commit, written, changed_files(reader_, base_tree, commit.tree));
    mark_foreign(changed_files(reader_, base_tree, parent_tree));
    return commit.base;
  }

 private:
  void mark_foreign(const std::map<Key, FileChange>& changes) {
    for (const auto& [key, change] : changes)
      if (!derived_.revisions.contains(key) && seen_.insert(key).second)
        derived_.foreign.insert(key);
  }

  // numbered: those that have a revision of this commit, in its order.
  void mark_ours(const Oid& id, const ParsedCommit& commit,
                 const std::map<Key, FileChange>& written,
                 const std::map<Key, FileChange>& numbered) {
    derived_.newest = std::max(derived_.newest, commit.last_revision);
    const bool exact = commit.last_revision - commit.first_revision + 1 == numbered.size();
    uint64_t revision = exact ? commit.first_revision : commit.last_revision;
    for (const auto& [key, change] : numbered) {
      if (written.contains(key)) note_written(id, key, change, revision);
      const Verb verb = !change.before ? Verb::create : !change.after ? Verb::remove : Verb::update;
      derived_.history.push_back({key,
                                  {revision, id.hex(), Time(std::chrono::seconds(commit.seconds)),
                                   commit.actor, verb, commit.subject}});
      revision += exact ? 1 : 0;
    }
  }

  void note_written(const Oid& id, const Key& key, const FileChange& change, uint64_t revision) {
    if (derived_.foreign.contains(key) && change.after) derived_.last_ours.emplace(key, id);
    if (seen_.insert(key).second) derived_.revisions.emplace(key, revision);
  }

  ObjectReader& reader_;
  Derived& derived_;
  std::set<Key> seen_;
};

}  // namespace

std::map<Key, FileChange> changed_files(ObjectReader& reader, const Oid& old_tree,
                                        const Oid& new_tree) {
  std::map<Key, FileChange> changes;
  if (old_tree == new_tree) return changes;
  for (const ObjectReader::Difference& d : reader.differences(old_tree, new_tree)) {
    const auto key = key_of_path(d.path);
    if (!key) continue;
    FileChange& change = changes[*key];
    if (d.before) change.before = d.before;
    if (d.after) change.after = d.after;
  }
  std::erase_if(changes, [](const auto& c) { return c.second.before == c.second.after; });
  return changes;
}

Derived walk_history(ObjectReader& reader, const Oid& tip, const std::optional<Oid>& known) {
  Derived derived;
  Walk walk(reader, derived);
  std::optional<Oid> at = tip;
  while (at && at != known) at = walk.visit(*at);
  return derived;
}

}  // namespace umpteenth::store
