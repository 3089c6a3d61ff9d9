// The start of a store: from what a crash, a power loss or other people left in the data folder to
// the state in force. What it finds in the journal it makes durable in git before it returns.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "store/database.h"
#include "store/journal.h"
#include "store/ledger.h"
#include "store/repository.h"

namespace umpteenth::store {

// A file that others changed and that has yet to be admitted.
struct FileEdit {
  Key key;
  std::optional<Oid> blob;  // nullopt: removed
  Oid commit;               // where it was seen
};

struct Recovered {
  Ledger ledger;
  std::vector<RecordPtr> records;  // in force
  std::map<Key, Oid> invalid;      // objects whose file is refused: its blob
  std::vector<FileEdit> pending;   // to be admitted before anything is committed
  uint64_t revision = 0;
  uint64_t generation = 0;  // sealed up to it
};

// Error(internal) where going on could lose acknowledged writes; the message says what to do.
Recovered recover(const std::filesystem::path& repository, Database& database,
                  const Journal& journal);

// Torn packs aside, indexes made again, what umpd left half done removed.
void repair_packs(const std::filesystem::path& repository, Database& database);

// Keeps what a ref named before it is moved elsewhere; the new ref's name.
std::string keep_recovered(const std::filesystem::path& repository, const Oid& commit);

}  // namespace umpteenth::store
