// A thin layer over SQLite: Db, Stmt, Txn. Failures throw Error with SQLite's own text; a full
// disk and another program's lock are Error(unavailable). One thread at a time uses a Db.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace umpteenth::store {

class Db;

// A prepared statement in use; reset when it goes. Parameters count from 1, columns from 0.
class Stmt {
 public:
  ~Stmt();
  Stmt(const Stmt&) = delete;
  Stmt& operator=(const Stmt&) = delete;

  Stmt& bind(int at, std::string_view text);
  Stmt& bind(int at, uint64_t number);
  Stmt& bind_blob(int at, std::string_view bytes);
  template <typename... Args>
  Stmt& bind_all(const Args&... args) {
    int at = 0;
    (bind(++at, args), ...);
    return *this;
  }
  bool step();                         // true: a row
  void run();                          // to the end
  std::string text(int column) const;  // text or bytes
  uint64_t number(int column) const;

 private:
  friend class Db;
  Stmt(Db& db, sqlite3_stmt* raw) : db_(db), raw_(raw) {}
  Db& db_;
  sqlite3_stmt* raw_;
};

class Db {
 public:
  enum class Mode { read_write, read_only };
  explicit Db(const std::filesystem::path& file, Mode mode = Mode::read_write);
  ~Db();
  Db(const Db&) = delete;
  Db& operator=(const Db&) = delete;

  void exec(const std::string& sql);
  Stmt prepare(const std::string& sql);  // compiled once a text
  uint64_t changes() const;
  [[noreturn]] void fail(int code, std::string_view attempted) const;

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3, Close> raw_;
  std::map<std::string, std::unique_ptr<sqlite3_stmt, Finalize>> cache_;
};

// Rolls back unless committed.
class Txn {
 public:
  explicit Txn(Db& db);
  ~Txn();
  Txn(const Txn&) = delete;
  Txn& operator=(const Txn&) = delete;
  void commit();

 private:
  Db& db_;
  bool done_ = false;
};

}  // namespace umpteenth::store
