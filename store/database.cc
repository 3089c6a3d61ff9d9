#include "store/database.h"

#include <ctime>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "store/tables.h"

namespace umpteenth::store {
namespace fs = std::filesystem;
namespace {

// Throws where the file is not a sound database.
std::unique_ptr<Db> open_sound(const fs::path& file) {
  auto db = std::make_unique<Db>(file);
  prepare_database(*db);
  Stmt check = db->prepare("SELECT COUNT(*) FROM object");
  check.step();
  return db;
}

void put_aside(const fs::path& file) {
  const std::string suffix = ".broken-" + std::to_string(std::time(nullptr));
  for (const char* part : {"", "-wal", "-shm"}) {
    std::error_code missing;
    fs::rename(file.string() + part, file.string() + suffix + part, missing);
  }
}

}  // namespace

Database::Database(const fs::path& file) {
  fresh_ = !fs::exists(file);
  try {
    writer_ = open_sound(file);
  } catch (const Error& e) {
    // Only what cannot be read at all: a full disk or a newer schema is no damage.
    const bool damaged = e.message().find("malformed") != std::string::npos ||
                         e.message().find("not a database") != std::string::npos;
    if (!damaged) throw;
    log::error("umpd.db is damaged: it is put aside; status and runs are lost, specs are not",
               {{"error", e.message()}});
    put_aside(file);
    fresh_ = true;
    writer_ = open_sound(file);
  }
  if (fresh_) fsync_path(file.parent_path());
  reader_ = std::make_unique<Db>(file);
  reader_->exec("PRAGMA cache_size=-1024");
}

}  // namespace umpteenth::store
