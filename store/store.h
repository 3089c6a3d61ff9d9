// What everyone may know of the store: records with one revision counter, commits that are durable
// when they return, watches in order, and the machine-made rows beside them. Thread-safe.
//
// An object is one JSON document. Of kinds kept in git everything but `status` goes to git (one
// commit a change; the file is YAML) and `status` to SQLite; of kinds kept in the database all goes
// to SQLite. Callers hand in the whole object; the store finds out which part changed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace umpteenth::store {

struct Key {
  std::string kind;  // the plural, e.g. "jobs"
  std::string ns;    // "" for cluster-scoped kinds
  std::string name;
  auto operator<=>(const Key&) const = default;
};
std::string to_string(const Key& key);  // jobs/default/hello

struct Record {
  Key key;
  uint64_t revision = 0;  // = metadata.resourceVersion in the text
  std::string json;       // the whole object, compact, as it is served
  json::Value parse() const { return json::parse(json); }
};
using RecordPtr = std::shared_ptr<const Record>;

enum class Verb { create, update, remove };

struct Change {
  Verb verb;
  Key key;
  json::Value object;  // ignored for remove; resourceVersion is set by the store
  // create: none. update, remove: the revision it was read at; absent = whatever is there.
  std::optional<uint64_t> expect;
};

struct Commit {
  std::vector<Change> changes;  // all of them or none; of one storage, at most 5000
  std::string actor;            // the authenticated subject, e.g. "admin", "system:controller:job"
  std::string message;          // first line of the git commit, e.g. "create jobs/default/hello"
};

struct Query {
  std::string kind;
  std::string ns;    // "" = all
  size_t limit = 0;  // 0 = all
  std::string next;  // Page::next of the page before: the same snapshot goes on
};

struct Page {
  uint64_t revision = 0;         // the snapshot's: the same for all pages of one list
  std::vector<RecordPtr> items;  // by ns, then name
  std::string next;              // "" at the end; Error(expired) when used after the snapshot left
  size_t remaining = 0;
};

struct Event {
  enum class Type { added, modified, removed } type;
  RecordPtr record;    // removed: the last state, carrying the removal's revision
  RecordPtr previous;  // none for added
};

// Ends its subscription when destroyed (after a call of the sink that is under way).
class Subscription {
 public:
  virtual ~Subscription() = default;
};

struct Revision {  // a line of history
  uint64_t revision;
  std::string commit;  // hex id; "" for database kinds
  Time time;
  std::string actor;
  Verb verb;
  std::string message;
};

struct TimelineRow {
  uint64_t seq;
  std::string json;
};

struct Health {
  bool ok = true;
  std::string reason;  // what is wrong and what to do
};

class Store {
 public:
  virtual ~Store() = default;

  // Reads come from memory.
  virtual RecordPtr find(const Key& key) const = 0;  // null where absent
  virtual Page list(const Query& query) const = 0;
  virtual uint64_t revision() const = 0;

  // Durable when it returns; the records as stored, in order of the changes (a removal: its last
  // state). A change without effect keeps its revision and writes nothing. Error: already_exists,
  // not_found, conflict (expect), unavailable (disk full, journal broken: nothing was written).
  virtual std::vector<RecordPtr> commit(const Commit& commit) = 0;
  RecordPtr commit_one(Change change, std::string actor, std::string message);

  // Events after `from` of one kind ("" = all kinds), then live ones, in order of revision, on the
  // store's own thread; the sink must not block and must not call commit. Error(expired) where
  // `from` is older than what is kept. `from` of the future: Error(timeout).
  virtual std::unique_ptr<Subscription> watch(std::string kind, uint64_t from,
                                              std::function<void(const Event&)> sink) = 0;
  // Where watch() at `from` would still work.
  virtual uint64_t oldest_watchable() const = 0;

  // History of kinds in git; newest first.
  virtual std::vector<Revision> history(const Key& key, size_t limit) const = 0;
  // The object (without status) as of that revision of its own history; revision or commit prefix.
  virtual json::Value object_at(const Key& key, std::string_view revision_or_commit) const = 0;

  // Machine-made rows. Timelines: seq counts from 1 in each owner (a run's uid).
  virtual uint64_t timeline_append(std::string_view owner,
                                   const std::vector<std::string>& json) = 0;
  virtual std::vector<TimelineRow> timeline_read(std::string_view owner, uint64_t after,
                                                 size_t limit) const = 0;
  virtual void timeline_remove(std::string_view owner) = 0;

  // Small durable values by (space, key): tokens, job state, counters.
  virtual std::optional<std::string> row_get(std::string_view space,
                                             std::string_view key) const = 0;
  virtual void row_put(std::string_view space, std::string_view key, std::string_view value) = 0;
  virtual bool row_remove(std::string_view space, std::string_view key) = 0;
  virtual std::vector<std::pair<std::string, std::string>> row_list(
      std::string_view space) const = 0;

  // Bytes by sha256 hex: artifacts, spilled payloads. Reference-counted by owner.
  virtual std::string blob_put(std::string_view owner, std::string_view bytes) = 0;
  virtual std::string blob_get(std::string_view digest) const = 0;  // Error(not_found)
  virtual void blobs_remove(std::string_view owner) = 0;

  virtual Health health() const = 0;
};

}  // namespace umpteenth::store
