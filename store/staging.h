// From what a caller hands in to what is stored: texts made once in the caller's thread, checks and
// revisions in the writer's. No I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/index.h"
#include "store/store.h"

namespace umpteenth::store {

// An object's text in the two parts that are kept apart, without resourceVersion.
struct Texts {
  std::string head, tail;  // the served text is head + revision + tail
  json::Value file;        // all but status
  json::Value status;      // null where absent
};
Texts texts_of(json::Value object);
std::string served(const Texts& texts, uint64_t revision);
// The served text of a record with another revision in it.
std::string with_revision(const Record& record, uint64_t revision);

struct Prepared {
  Verb verb = Verb::update;
  Key key;
  std::optional<uint64_t> expect;
  Texts texts;
  RecordPtr base;  // what the two flags compare with
  bool file_changed = true, status_changed = true;
  std::string yaml;  // of kinds in git, where file_changed
};
// base: the record in force, or null.
Prepared prepare(const Change& change, RecordPtr base);
void compare(Prepared& prepared, RecordPtr base);

// Error(bad_request) for too many changes, twice the same key, or an empty name.
void check_shape(const Commit& commit);

struct Staged {
  Prepared* prepared = nullptr;
  RecordPtr record;    // as it will be; == previous where the change has no effect
  RecordPtr previous;  // null for create
  bool effect() const { return record != previous; }
};

// The index as it will be when the changes staged so far are durable.
class Staging {
 public:
  explicit Staging(const Index& index, uint64_t revision) : index_(index), revision_(revision) {}

  // All of them or, by exception, none. Revisions are given in order of the keys, so that they can
  // be found again from a git commit, which knows no order; the result is in the order of `commit`.
  std::vector<Staged> stage(std::vector<Prepared>& commit) const;
  void accept(const std::vector<Staged>& staged);
  RecordPtr find(const Key& key) const;
  uint64_t revision() const { return revision_; }

 private:
  const Index& index_;
  uint64_t revision_;
  std::map<Key, RecordPtr> changed_;  // null: removed
};

Index::Update update_of(const Staged& staged);
Event event_of(const Staged& staged);

}  // namespace umpteenth::store
