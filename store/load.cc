#include "store/load.h"

#include <algorithm>

#include "apis/kind.h"
#include "base/error.h"
#include "base/log.h"
#include "store/codec.h"
#include "store/history_walk.h"
#include "store/layout.h"
#include "store/staging.h"

namespace umpteenth::store {
namespace {

constexpr size_t kRowsATransaction = 5000;

struct CarriedStatus {
  uint64_t revision = 0;
  json::Value status;
};

// Statuses that were acknowledged with a spec and may not be in SQLite yet.
std::map<Key, CarriedStatus> carried_statuses(const std::vector<JournalRecord>& journal) {
  std::map<Key, CarriedStatus> carried;
  for (const JournalRecord& record : journal)
    for (const JournalChange& change : record.changes) {
      if (change.verb == Verb::remove) {
        carried.erase(change.key);
      } else if (change.verb == Verb::create || !change.status_json.empty()) {
        json::Value status;
        if (!change.status_json.empty()) status = json::parse(change.status_json);
        carried[change.key] = {change.revision, std::move(status)};
      }
    }
  return carried;
}

bool kept_in_git(const std::string& plural) {
  const apis::Kind* kind = apis::find_kind(plural);
  return kind && kind->storage == apis::Storage::git;
}

class Loader {
 public:
  Loader(ObjectReader& reader, Database& database, Derived derived,
         std::map<Key, CarriedStatus> carried, Recovered& recovered)
      : reader_(reader),
        database_(database),
        derived_(std::move(derived)),
        carried_(std::move(carried)),
        recovered_(recovered) {}

  void run() {
    read_rows();
    recovered_.ledger.tree().for_each([this](Key key, const FolderTree::File& file) {
      if (kept_in_git(key.kind)) load_file(key, file.id);
    });
    for (auto& [key, row] : rows_) drop_row(key, row);
    std::sort(recovered_.records.begin(), recovered_.records.end(),
              [](const RecordPtr& a, const RecordPtr& b) { return a->key < b->key; });
  }

  void write(const std::optional<Oid>& head) {
    auto line = derived_.history.begin();
    auto row = fresh_rows_.begin();
    while (line != derived_.history.end() || row != fresh_rows_.end())
      database_.write([&](Db& db) {
        for (size_t n = 0; n < kRowsATransaction && line != derived_.history.end(); ++n, ++line)
          put_history(db, *line);
        for (size_t n = 0; n < kRowsATransaction && row != fresh_rows_.end(); ++n, ++row)
          put_object(db, *row);
      });
    database_.write([&](Db& db) {
      for (const Key& key : dropped_) remove_object(db, key, INT64_MAX);
      if (head) put_meta(db, kMetaHead, head->hex());
      raise_revision(db, recovered_.revision);
    });
  }

 private:
  void read_rows() {
    recovered_.revision = derived_.newest;
    for (const auto& [key, status] : carried_) see(status.revision);
    database_.read([this](Db& db) {
      see(read_revision(db));
      for_each_object(db, [this](ObjectRow row) {
        see(row.revision);
        if (kept_in_git(row.key.kind))
          rows_.emplace_hint(rows_.end(), row.key, std::move(row));
        else
          in_force(row.key, row.revision, std::move(row.json));
      });
    });
  }

  void see(uint64_t revision) { recovered_.revision = std::max(recovered_.revision, revision); }

  void in_force(const Key& key, uint64_t revision, std::string json) {
    auto record = std::make_shared<Record>();
    record->key = key;
    record->revision = revision;
    record->json = std::move(json);
    recovered_.records.push_back(std::move(record));
  }

  void load_file(const Key& key, const Oid& blob) {
    auto node = rows_.extract(key);
    ObjectRow* row = node.empty() ? nullptr : &node.mapped();
    if (row && row->file == blob) {
      if (row->invalid) recovered_.invalid[key] = blob;
      in_force(key, row->revision, std::move(row->json));
      return;
    }
    if (derived_.foreign.contains(key)) {
      leave_for_admission(key, blob, row);
      return;
    }
    try {
      const auto found = derived_.revisions.find(key);
      take(key, blob, blob, found == derived_.revisions.end() ? 0 : found->second, row, false);
    } catch (const Error& e) {
      // Not something that umpd wrote: as any other edit then.
      leave_for_admission(key, blob, row);
    }
  }

  // Until it is admitted, what was in force stays so.
  void leave_for_admission(const Key& key, const Oid& blob, ObjectRow* row) {
    recovered_.pending.push_back({key, blob, recovered_.ledger.head()});
    if (row) {
      in_force(key, row->revision, std::move(row->json));
      return;
    }
    const auto ours = derived_.last_ours.find(key);
    if (ours == derived_.last_ours.end()) return;
    for (const std::string& path : {split_path(key), flat_path(key)})
      if (const auto old = reader_.at_path(ours->second, path)) {
        take(key, *old, *old, 0, nullptr, false);
        return;
      }
  }

  void take(const Key& key, const Oid& content, const Oid& file, uint64_t revision,
            const ObjectRow* row, bool invalid) {
    json::Value object = parse_file(key, reader_.get(content, "file"));
    json::Value status;
    if (row) {
      const json::Value old = json::parse(row->json);
      if (old.at_path({"metadata", "uid"}) == object.at_path({"metadata", "uid"}))
        status = old.get("status");
    }
    if (const auto it = carried_.find(key);
        it != carried_.end() && it->second.revision > (row ? row->revision : 0))
      status = it->second.status;
    if (!status.is_null()) object.set("status", std::move(status));
    if (revision == 0) revision = ++recovered_.revision;
    std::string json = served(texts_of(std::move(object)), revision);
    in_force(key, revision, json);
    fresh_rows_.push_back({key, revision, file, invalid, std::move(json)});
  }

  // A row without a file: removed, by umpd or by someone else.
  void drop_row(const Key& key, ObjectRow& row) {
    if (derived_.foreign.contains(key)) {
      recovered_.pending.push_back({key, std::nullopt, recovered_.ledger.head()});
      in_force(key, row.revision, std::move(row.json));
    } else {
      dropped_.push_back(key);
    }
  }

  ObjectReader& reader_;
  Database& database_;
  Derived derived_;
  std::map<Key, CarriedStatus> carried_;
  Recovered& recovered_;
  std::map<Key, ObjectRow> rows_;  // of kinds in git, not yet matched with a file
  std::vector<ObjectRow> fresh_rows_;
  std::vector<Key> dropped_;
};

}  // namespace

void load_objects(ObjectReader& reader, Database& database,
                  const std::vector<JournalRecord>& journal, const std::optional<Oid>& known,
                  Recovered& recovered) {
  const Oid head = recovered.ledger.head();
  Derived derived;
  if (known != head) derived = walk_history(reader, head, known);
  for (const JournalRecord& record : journal)
    for (const JournalChange& change : record.changes)
      derived.newest = std::max(derived.newest, change.revision);
  Loader loader(reader, database, std::move(derived), carried_statuses(journal), recovered);
  loader.run();
  // With edits still to be admitted the rows do not stand at the head: the next start looks again.
  loader.write(recovered.pending.empty() ? std::optional(head) : std::nullopt);
}

}  // namespace umpteenth::store
