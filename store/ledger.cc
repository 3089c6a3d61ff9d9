#include "store/ledger.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "base/log.h"

namespace umpteenth::store {

Oid Ledger::apply(const JournalChange& change) {
  if (change.verb == Verb::remove) {
    tree_.erase(change.key);
    return {};
  }
  PackObject blob;
  blob.type = ObjectType::blob;
  blob.data = change.yaml;
  blob.id = hash_object(ObjectType::blob, blob.data);
  const Oid id = blob.id;
  generation_->objects.push_back(std::move(blob));
  tree_.put(change.key, id);
  return id;
}

void Ledger::finish_commit(const std::string& text) {
  PackObject commit;
  commit.type = ObjectType::commit;
  commit.data = text;
  commit.id = hash_object(ObjectType::commit, text);
  head_ = commit.id;
  generation_->tip = commit.id;
  generation_->objects.push_back(std::move(commit));
  ++generation_->commits;
}

Ledger::Added Ledger::add(std::vector<JournalChange> changes, const Info& info) {
  Added added;
  CommitText text;
  text.parent = head_;
  text.actor = info.actor;
  text.message = info.message;
  text.base = info.base;
  text.seconds = added.seconds = std::time(nullptr);
  text.first_revision = UINT64_MAX;
  for (const JournalChange& change : changes) {
    added.blobs.push_back(apply(change));
    text.first_revision = std::min(text.first_revision, change.revision);
    text.last_revision = std::max(text.last_revision, change.revision);
  }
  if (info.last_revision != 0) {
    text.first_revision = info.first_revision;
    text.last_revision = info.last_revision;
  }
  text.tree = tree_.finish(generation_->number, generation_->objects);
  added.record.generation = generation_->number;
  added.record.sequence = sequence_++;
  added.record.changes = std::move(changes);
  added.record.commit = to_string(text);
  finish_commit(added.record.commit);
  added.commit = head_;
  generation_->revision = std::max(generation_->revision, text.last_revision);
  return added;
}

void Ledger::replay(const JournalRecord& record) {
  const ParsedCommit commit = parse_commit(record.commit);
  const std::string id = hash_object(ObjectType::commit, record.commit).hex();
  if (!commit.parent || *commit.parent != head_)
    throw Error(Code::internal, "store: the journal's commit " + id + " does not follow " +
                                    head_.hex() + ": part of the journal is missing");
  for (const JournalChange& change : record.changes) apply(change);
  const Oid tree = tree_.finish(generation_->number, generation_->objects);
  if (tree != commit.tree)
    throw Error(Code::internal, "store: replaying commit " + id + " gives tree " + tree.hex() +
                                    " instead of " + commit.tree.hex());
  finish_commit(record.commit);
  sequence_ = record.sequence + 1;
}

void Ledger::open(uint64_t number) {
  generation_.emplace();
  generation_->number = number;
  generation_->before = generation_->tip = head_;
  generation_->opened = std::chrono::steady_clock::now();
}

Generation Ledger::close() {
  Generation closed = *std::move(generation_);
  generation_.reset();
  return closed;
}

void Ledger::move_to(FolderTree tree, const Oid& head) {
  tree_ = std::move(tree);
  head_ = head;
  if (generation_ && generation_->commits == 0) generation_->before = generation_->tip = head;
}

}  // namespace umpteenth::store
