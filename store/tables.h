// The rows of umpd.db. Functions take the Db whose transaction they are part of.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/git_object.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace umpteenth::store {

const std::vector<std::string>& schema_migrations();
// WAL, synchronous=FULL, all migrations; Error(internal) for a newer schema.
void prepare_database(Db& db);

struct ObjectRow {
  Key key;
  uint64_t revision = 0;
  Oid file;  // null for kinds kept in the database
  bool invalid = false;
  std::string json;
};
// An older revision never replaces a newer one.
void put_object(Db& db, const ObjectRow& row);
void remove_object(Db& db, const Key& key, uint64_t revision);
void for_each_object(Db& db, const std::function<void(ObjectRow)>& visit);  // by kind, ns, name

struct HistoryRow {
  Key key;
  Revision line;
};
void put_history(Db& db, const HistoryRow& row);
std::vector<Revision> read_history(Db& db, const Key& key, size_t limit);

std::string get_meta(Db& db, std::string_view key);  // "" where absent
void put_meta(Db& db, std::string_view key, std::string_view value);
// Never goes back.
void raise_revision(Db& db, uint64_t revision);
uint64_t read_revision(Db& db);
inline constexpr char kMetaHead[] = "head";  // the commit that the derived rows stand at

struct PackRow {
  std::string name;
  bool own = false, retired = false;
};
void put_pack(Db& db, const PackRow& row);
void forget_pack(Db& db, const std::string& name);
std::vector<PackRow> read_packs(Db& db);

uint64_t append_timeline(Db& db, std::string_view owner, const std::vector<std::string>& json);
std::vector<TimelineRow> read_timeline(Db& db, std::string_view owner, uint64_t after,
                                       size_t limit);

}  // namespace umpteenth::store
