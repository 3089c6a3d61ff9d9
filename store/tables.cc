#include "store/tables.h"

#include <charconv>

#include "base/error.h"

namespace umpteenth::store {

void prepare_database(Db& db) {
  db.exec("PRAGMA journal_mode=WAL");
  db.exec("PRAGMA synchronous=FULL");
  db.exec("PRAGMA cache_size=-2048");
  db.exec("PRAGMA wal_autocheckpoint=2000");
  uint64_t version = 0;
  {
    Stmt read = db.prepare("PRAGMA user_version");
    if (read.step()) version = read.number(0);
  }
  const auto& migrations = schema_migrations();
  if (version > migrations.size())
    throw Error(Code::internal, "database: its schema " + std::to_string(version) +
                                    " is newer than this umpd's " +
                                    std::to_string(migrations.size()) + ": start a newer umpd");
  for (; version < migrations.size(); ++version) {
    Txn txn(db);
    db.exec(migrations[version]);
    db.exec("PRAGMA user_version=" + std::to_string(version + 1));
    txn.commit();
  }
}

void put_object(Db& db, const ObjectRow& row) {
  Stmt put = db.prepare(
      "INSERT INTO object VALUES (?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET "
      "revision=excluded.revision, file=excluded.file, invalid=excluded.invalid, "
      "json=excluded.json WHERE excluded.revision >= object.revision");
  put.bind_all(row.key.kind, row.key.ns, row.key.name, row.revision);
  put.bind_blob(5, row.file.is_null() ? std::string_view() : row.file.view());
  put.bind(6, uint64_t{row.invalid});
  put.bind(7, row.json);
  put.run();
}

void remove_object(Db& db, const Key& key, uint64_t revision) {
  Stmt remove = db.prepare("DELETE FROM object WHERE kind=? AND ns=? AND name=? AND revision<=?");
  remove.bind_all(key.kind, key.ns, key.name, revision).run();
}

void for_each_object(Db& db, const std::function<void(ObjectRow)>& visit) {
  Stmt rows = db.prepare(
      "SELECT kind, ns, name, revision, file, invalid, json FROM object ORDER BY kind, ns, name");
  while (rows.step()) {
    ObjectRow row;
    row.key = {rows.text(0), rows.text(1), rows.text(2)};
    row.revision = rows.number(3);
    if (const std::string file = rows.text(4); file.size() == 20) row.file = Oid::from_bytes(file);
    row.invalid = rows.number(5) != 0;
    row.json = rows.text(6);
    visit(std::move(row));
  }
}

void put_history(Db& db, const HistoryRow& row) {
  const Oid commit = Oid::from_hex(row.line.commit).value_or(Oid{});
  const auto seconds = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(row.line.time.time_since_epoch()).count());
  Stmt put = db.prepare("INSERT OR REPLACE INTO history VALUES (?,?,?,?,?,?,?,?,?)");
  put.bind_all(row.key.kind, row.key.ns, row.key.name, row.line.revision);
  put.bind_blob(5, commit.view());
  put.bind(6, seconds).bind(7, static_cast<uint64_t>(row.line.verb));
  put.bind(8, row.line.actor).bind(9, row.line.message).run();
}

std::vector<Revision> read_history(Db& db, const Key& key, size_t limit) {
  Stmt rows = db.prepare(
      "SELECT revision, commit_id, seconds, verb, actor, message FROM history "
      "WHERE kind=? AND ns=? AND name=? ORDER BY revision DESC LIMIT ?");
  rows.bind_all(key.kind, key.ns, key.name, limit == 0 ? uint64_t{INT64_MAX} : uint64_t{limit});
  std::vector<Revision> lines;
  while (rows.step())
    lines.push_back({rows.number(0), Oid::from_bytes(rows.text(1)).hex(),
                     Time(std::chrono::seconds(rows.number(2))), rows.text(4),
                     static_cast<Verb>(rows.number(3)), rows.text(5)});
  return lines;
}

std::string get_meta(Db& db, std::string_view key) {
  Stmt read = db.prepare("SELECT value FROM meta WHERE key=?");
  read.bind(1, key);
  return read.step() ? read.text(0) : std::string();
}

void put_meta(Db& db, std::string_view key, std::string_view value) {
  db.prepare("INSERT OR REPLACE INTO meta VALUES (?,?)").bind_all(key, value).run();
}

void raise_revision(Db& db, uint64_t revision) {
  Stmt put = db.prepare(
      "INSERT INTO meta VALUES ('revision', ?) ON CONFLICT DO UPDATE SET value=excluded.value "
      "WHERE CAST(excluded.value AS INTEGER) > CAST(meta.value AS INTEGER)");
  const std::string text = std::to_string(revision);
  put.bind(1, text).run();
}

uint64_t read_revision(Db& db) {
  const std::string text = get_meta(db, "revision");
  uint64_t revision = 0;
  std::from_chars(text.data(), text.data() + text.size(), revision);
  return revision;
}

void put_pack(Db& db, const PackRow& row) {
  db.prepare("INSERT OR REPLACE INTO pack VALUES (?,?,?)")
      .bind_all(row.name, uint64_t{row.own}, uint64_t{row.retired})
      .run();
}
void forget_pack(Db& db, const std::string& name) {
  db.prepare("DELETE FROM pack WHERE name=?").bind(1, name).run();
}
std::vector<PackRow> read_packs(Db& db) {
  Stmt rows = db.prepare("SELECT name, own, retired FROM pack ORDER BY name");
  std::vector<PackRow> packs;
  while (rows.step()) packs.push_back({rows.text(0), rows.number(1) != 0, rows.number(2) != 0});
  return packs;
}

uint64_t append_timeline(Db& db, std::string_view owner, const std::vector<std::string>& json) {
  uint64_t last = 0;
  {
    Stmt read = db.prepare("SELECT MAX(seq) FROM timeline WHERE owner=?");
    read.bind(1, owner);
    if (read.step()) last = read.number(0);
  }
  for (const std::string& row : json) {
    ++last;
    db.prepare("INSERT INTO timeline VALUES (?,?,?)").bind_all(owner, last, row).run();
  }
  return last;
}

std::vector<TimelineRow> read_timeline(Db& db, std::string_view owner, uint64_t after,
                                       size_t limit) {
  Stmt rows =
      db.prepare("SELECT seq, json FROM timeline WHERE owner=? AND seq>? ORDER BY seq LIMIT ?");
  rows.bind_all(owner, after, limit == 0 ? uint64_t{INT64_MAX} : uint64_t{limit});
  std::vector<TimelineRow> timeline;
  while (rows.step()) timeline.push_back({rows.number(0), rows.text(1)});
  return timeline;
}

}  // namespace umpteenth::store
