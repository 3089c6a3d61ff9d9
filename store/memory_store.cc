// The store in maps: the real one's index, staging and watches over no disk.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "apis/kind.h"
#include "base/crypto.h"
#include "base/error.h"
#include "store/indexed_store.h"
#include "store/open.h"
#include "store/staging.h"

namespace umpteenth::store {
namespace {

constexpr size_t kWatchHistory = 20'000;

bool kept_in_database(const Key& key) {
  const apis::Kind* kind = apis::find_stored_kind(key.kind);
  return kind && kind->storage == apis::Storage::database;
}

class MemoryStore : public IndexedStore {
 public:
  MemoryStore() : IndexedStore(kWatchHistory) {}

  std::vector<RecordPtr> commit(const Commit& commit) override;

  std::vector<Revision> history(const Key& key, size_t limit) const override;
  json::Value object_at(const Key& key, std::string_view revision_or_commit) const override;

  uint64_t timeline_append(std::string_view owner, const std::vector<std::string>& json) override;
  std::vector<TimelineRow> timeline_read(std::string_view owner, uint64_t after,
                                         size_t limit) const override;
  void timeline_remove(std::string_view owner) override;

  std::optional<std::string> row_get(std::string_view space, std::string_view key) const override;
  void row_put(std::string_view space, std::string_view key, std::string_view value) override;
  bool row_remove(std::string_view space, std::string_view key) override;
  std::vector<std::pair<std::string, std::string>> row_list(std::string_view space) const override;

  std::string blob_put(std::string_view owner, std::string_view bytes) override;
  std::string blob_get(std::string_view digest) const override;
  void blobs_remove(std::string_view owner) override;

  Health health() const override { return {}; }

 private:
  struct Version {
    Revision line;
    json::Value object;  // without status and resourceVersion; null for a removal
  };
  struct Timeline {
    uint64_t last = 0;
    std::vector<TimelineRow> rows;
  };
  struct Blob {
    std::string bytes;
    std::set<std::string, std::less<>> owners;
  };

  void remember(const Staged& staged, const Commit& commit, Time now);

  std::mutex writer_;
  mutable std::mutex rows_mutex_;
  std::map<Key, std::vector<Version>> history_;
  std::map<std::string, Timeline, std::less<>> timelines_;
  std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>> rows_;
  std::map<std::string, Blob, std::less<>> blobs_;
};

std::vector<RecordPtr> MemoryStore::commit(const Commit& commit) {
  check_shape(commit);
  std::vector<Prepared> prepared;
  for (const Change& change : commit.changes)
    prepared.push_back(prepare(change, index_.find(change.key)));

  std::lock_guard lock(writer_);
  Staging staging(index_, index_.revision());
  const std::vector<Staged> staged = staging.stage(prepared);
  staging.accept(staged);
  std::vector<Index::Update> updates;
  std::vector<Event> events;
  std::vector<RecordPtr> records;
  const Time now = system_clock().now();
  for (const Staged& s : staged) {
    records.push_back(s.record);
    if (!s.effect()) continue;
    updates.push_back(update_of(s));
    events.push_back(event_of(s));
    if (s.prepared->file_changed && !kept_in_database(s.record->key)) remember(s, commit, now);
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.record->revision < b.record->revision; });
  index_.apply(updates, staging.revision());
  hub_.publish(std::move(events));
  return records;
}

void MemoryStore::remember(const Staged& staged, const Commit& commit, Time now) {
  const Key& key = staged.record->key;
  Version version;
  version.line = {
      staged.record->revision,
      crypto::hex(crypto::sha1(to_string(key) + std::to_string(staged.record->revision))),
      now,
      commit.actor,
      staged.prepared->verb,
      commit.message};
  if (staged.prepared->verb != Verb::remove) version.object = staged.prepared->texts.file;
  std::lock_guard lock(rows_mutex_);
  history_[key].push_back(std::move(version));
}

std::vector<Revision> MemoryStore::history(const Key& key, size_t limit) const {
  std::lock_guard lock(rows_mutex_);
  std::vector<Revision> lines;
  const auto it = history_.find(key);
  if (it == history_.end()) return lines;
  for (auto v = it->second.rbegin(); v != it->second.rend(); ++v) {
    if (limit != 0 && lines.size() == limit) break;
    lines.push_back(v->line);
  }
  return lines;
}

json::Value MemoryStore::object_at(const Key& key, std::string_view which) const {
  std::lock_guard lock(rows_mutex_);
  if (const auto it = history_.find(key); it != history_.end())
    for (const Version& v : it->second)
      if (std::to_string(v.line.revision) == which ||
          (which.size() >= 7 && v.line.commit.starts_with(which)))
        if (!v.object.is_null()) return v.object;
  throw Error(Code::not_found,
              to_string(key) + " has no revision " + json::quote(which) + " in its history");
}

uint64_t MemoryStore::timeline_append(std::string_view owner,
                                      const std::vector<std::string>& json) {
  std::lock_guard lock(rows_mutex_);
  Timeline& timeline = timelines_[std::string(owner)];
  for (const std::string& row : json) timeline.rows.push_back({++timeline.last, row});
  return timeline.last;
}

std::vector<TimelineRow> MemoryStore::timeline_read(std::string_view owner, uint64_t after,
                                                    size_t limit) const {
  std::lock_guard lock(rows_mutex_);
  std::vector<TimelineRow> rows;
  const auto it = timelines_.find(owner);
  if (it == timelines_.end()) return rows;
  for (const TimelineRow& row : it->second.rows) {
    if (limit != 0 && rows.size() == limit) break;
    if (row.seq > after) rows.push_back(row);
  }
  return rows;
}

void MemoryStore::timeline_remove(std::string_view owner) {
  std::lock_guard lock(rows_mutex_);
  if (const auto it = timelines_.find(owner); it != timelines_.end()) timelines_.erase(it);
}

std::optional<std::string> MemoryStore::row_get(std::string_view space,
                                                std::string_view key) const {
  std::lock_guard lock(rows_mutex_);
  const auto it = rows_.find(space);
  if (it == rows_.end()) return std::nullopt;
  const auto row = it->second.find(key);
  return row == it->second.end() ? std::nullopt : std::optional(row->second);
}

void MemoryStore::row_put(std::string_view space, std::string_view key, std::string_view value) {
  std::lock_guard lock(rows_mutex_);
  rows_[std::string(space)][std::string(key)] = value;
}

bool MemoryStore::row_remove(std::string_view space, std::string_view key) {
  std::lock_guard lock(rows_mutex_);
  const auto it = rows_.find(space);
  return it != rows_.end() && it->second.erase(std::string(key)) > 0;
}

std::vector<std::pair<std::string, std::string>> MemoryStore::row_list(
    std::string_view space) const {
  std::lock_guard lock(rows_mutex_);
  const auto it = rows_.find(space);
  if (it == rows_.end()) return {};
  return {it->second.begin(), it->second.end()};
}

std::string MemoryStore::blob_put(std::string_view owner, std::string_view bytes) {
  const std::string digest = crypto::hex(crypto::sha256(bytes));
  std::lock_guard lock(rows_mutex_);
  Blob& blob = blobs_[digest];
  blob.bytes = bytes;
  blob.owners.insert(std::string(owner));
  return digest;
}

std::string MemoryStore::blob_get(std::string_view digest) const {
  std::lock_guard lock(rows_mutex_);
  const auto it = blobs_.find(digest);
  if (it == blobs_.end()) throw Error(Code::not_found, "no blob " + std::string(digest));
  return it->second.bytes;
}

void MemoryStore::blobs_remove(std::string_view owner) {
  std::lock_guard lock(rows_mutex_);
  for (auto it = blobs_.begin(); it != blobs_.end();) {
    it->second.owners.erase(std::string(owner));
    it = it->second.owners.empty() ? blobs_.erase(it) : std::next(it);
  }
}

}  // namespace

std::unique_ptr<Store> make_memory_store() { return std::make_unique<MemoryStore>(); }

}  // namespace umpteenth::store
