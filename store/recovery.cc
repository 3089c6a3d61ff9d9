#include "store/recovery.h"

#include <ctime>

#include "base/error.h"
#include "base/log.h"
#include "store/load.h"
#include "store/sealer.h"

namespace umpteenth::store {
namespace fs = std::filesystem;
namespace {

struct Start {
  Oid base;         // readable, and ours
  size_t from = 0;  // records from here on follow it
};

std::optional<Oid> readable(ObjectReader& reader, const std::optional<Oid>& id) {
  return id && reader.find(*id) ? id : std::nullopt;
}

// The ref is not asked: after a power loss it may be old, with older journal records gone.
Start find_start(ObjectReader& reader, const std::vector<JournalRecord>& records,
                 const std::optional<Oid>& known, const std::optional<Oid>& ref) {
  for (size_t i = records.size(); i-- > 0;) {
    const Oid id = hash_object(ObjectType::commit, records[i].commit);
    const auto parent = parse_commit(records[i].commit).parent;
    if (reader.find(id)) {
      // An edit by others that was taken over without a commit of ours stands after it.
      const bool last = i + 1 == records.size();
      return {last && known && reader.is_ancestor(id, *known) ? *known : id, i + 1};
    }
    if (readable(reader, parent)) return {*parent, i};
  }
  if (!records.empty())
    throw Error(Code::internal,
                "store: the journal does not connect to any commit in the repository; restore "
                "store.git from a copy that is at most as old as the journal, or move "
                "store.git/umpd/journal* away to go on without the writes in it");
  if (known) return {*known, 0};
  if (ref) return {*ref, 0};
  throw Error(Code::internal,
              "store: refs/heads/main names no readable commit and the journal is empty; restore "
              "store.git from a copy");
}

// Brings the ref and the recovered tip together. base: the newest commit of ours that was readable.
void settle_ref(const fs::path& repository, ObjectReader& reader, const Oid& base, bool replayed,
                const std::optional<Oid>& ref) {
  if (ref == base) return;
  const bool behind = !ref || reader.is_ancestor(*ref, base);
  if (!behind && !replayed && reader.is_ancestor(base, *ref))
    return;  // others went on: admitted soon
  if (!behind) {
    const std::string kept = keep_recovered(repository, *ref);
    log::error("refs/heads/main had left acknowledged writes behind; what it named is kept",
               {{"commit", ref->hex()}, {"ref", kept}});
  }
  if (!replayed) write_ref(repository, kMainRef, base);
}

}  // namespace

std::string keep_recovered(const fs::path& repository, const Oid& commit) {
  const std::string name =
      "refs/umpd/recovered/" + std::to_string(std::time(nullptr)) + "-" + commit.hex().substr(0, 8);
  write_ref(repository, name, commit);
  return name;
}

Recovered recover(const fs::path& repository, Database& database, const Journal& journal) {
  repair_packs(repository, database);
  const std::vector<JournalRecord> records = journal.read();
  ObjectReader reader(repository);
  const auto known = readable(
      reader, Oid::from_hex(database.read([](Db& db) { return get_meta(db, kMetaHead); })));
  const auto ref = readable(reader, read_ref(repository, kMainRef));
  const Start start = find_start(reader, records, known, ref);
  const bool replay = start.from < records.size();
  settle_ref(repository, reader, start.base, replay, ref);

  const auto read_tree = [&reader](const Oid& id) { return reader.get(id, "tree"); };
  Recovered recovered{
      Ledger(FolderTree(reader.commit(start.base).tree, read_tree), start.base), {}, {}, {}, 0, 0};
  if (!records.empty()) recovered.generation = records.back().generation;
  if (replay) {
    Ledger& ledger = recovered.ledger;
    ledger.open(++recovered.generation);
    for (size_t i = start.from; i < records.size(); ++i) ledger.replay(records[i]);
    Generation generation = ledger.close();
    generation.before = read_ref(repository, kMainRef).value_or(generation.tip);
    log::info("writes recovered from the journal",
              {{"commits", generation.commits}, {"head", generation.tip.hex()}});
    // Rows and the head they stand at are derived below, from git.
    const std::string pack = seal_objects(generation, repository);
    database.write([&](Db& db) { put_pack(db, {pack, true, false}); });
  }
  load_objects(reader, database, records, known, recovered);
  return recovered;
}

}  // namespace umpteenth::store
