#include "store/sqlite.h"

#include <sqlite3.h>

#include "base/error.h"
#include "base/log.h"

namespace umpteenth::store {
namespace {

constexpr int kBusyMilliseconds = 10'000;

}  // namespace

void Db::Close::operator()(sqlite3* db) const { sqlite3_close_v2(db); }
void Db::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Db::Db(const std::filesystem::path& file, Mode mode) {
  const int flags = (mode == Mode::read_only ? SQLITE_OPEN_READONLY
                                             : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
                    SQLITE_OPEN_NOMUTEX;
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &raw, flags, nullptr);
  raw_.reset(raw);
  if (code != SQLITE_OK) fail(code, "open " + file.string());
  sqlite3_busy_timeout(raw, kBusyMilliseconds);
  sqlite3_extended_result_codes(raw, 1);
}

Db::~Db() { cache_.clear(); }

void Db::fail(int code, std::string_view attempted) const {
  const int plain = code & 0xff;
  const bool passing = plain == SQLITE_FULL || plain == SQLITE_BUSY ||
                       (plain == SQLITE_IOERR && raw_ && sqlite3_system_errno(raw_.get()) == 28);
  throw Error(passing ? Code::unavailable : Code::internal,
              "database: " + std::string(attempted) + ": " +
                  (raw_ ? sqlite3_errmsg(raw_.get()) : sqlite3_errstr(code)));
}

void Db::exec(const std::string& sql) {
  const int code = sqlite3_exec(raw_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code, sql.substr(0, 60));
}

Stmt Db::prepare(const std::string& sql) {
  auto& slot = cache_[sql];
  if (!slot) {
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v3(raw_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
    if (code != SQLITE_OK) fail(code, sql.substr(0, 60));
    slot.reset(raw);
  }
  return Stmt(*this, slot.get());
}

uint64_t Db::changes() const { return static_cast<uint64_t>(sqlite3_changes64(raw_.get())); }

Stmt::~Stmt() {
  sqlite3_reset(raw_);
  sqlite3_clear_bindings(raw_);
}

// Bound values stay with the caller until the statement has run.
Stmt& Stmt::bind(int at, std::string_view text) {
  const char* data = text.data() ? text.data() : "";
  const int code = sqlite3_bind_text64(raw_, at, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (code != SQLITE_OK) db_.fail(code, "bind");
  return *this;
}
Stmt& Stmt::bind(int at, uint64_t number) {
  const int code = sqlite3_bind_int64(raw_, at, static_cast<sqlite3_int64>(number));
  if (code != SQLITE_OK) db_.fail(code, "bind");
  return *this;
}
Stmt& Stmt::bind_blob(int at, std::string_view bytes) {
  const char* data = bytes.data() ? bytes.data() : "";
  const int code = sqlite3_bind_blob64(raw_, at, data, bytes.size(), SQLITE_STATIC);
  if (code != SQLITE_OK) db_.fail(code, "bind");
  return *this;
}

bool Stmt::step() {
  const int code = sqlite3_step(raw_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) db_.fail(code, std::string_view(sqlite3_sql(raw_)).substr(0, 60));
  return false;
}
void Stmt::run() {
  while (step()) {
  }
}

std::string Stmt::text(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(raw_, column));
  const int size = sqlite3_column_bytes(raw_, column);
  return data ? std::string(data, static_cast<size_t>(size)) : std::string();
}
uint64_t Stmt::number(int column) const {
  return static_cast<uint64_t>(sqlite3_column_int64(raw_, column));
}

Txn::Txn(Db& db) : db_(db) { db_.exec("BEGIN IMMEDIATE"); }
void Txn::commit() {
  db_.exec("COMMIT");
  done_ = true;
}
Txn::~Txn() {
  if (done_) return;
  try {
    db_.exec("ROLLBACK");
  } catch (const Error& e) {  // SQLite rolls back by itself on some failures
    log::debug("rollback", {{"error", e.message()}});
  }
}

}  // namespace umpteenth::store
