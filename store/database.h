// D/umpd.db: one connection that writes, one that reads, each for one thread at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>

#include "store/sqlite.h"

namespace umpteenth::store {

class Database {
 public:
  // A file that SQLite calls corrupt is put aside, loudly, and a new one made: specs are in git.
  explicit Database(const std::filesystem::path& file);

  bool fresh() const { return fresh_; }  // made by this open

  // In a transaction that ends with f; rolled back where f throws.
  template <typename F>
  auto write(F&& f) {
    std::lock_guard lock(write_mutex_);
    Txn txn(*writer_);
    if constexpr (std::is_void_v<decltype(f(*writer_))>) {
      f(*writer_);
      txn.commit();
    } else {
      auto result = f(*writer_);
      txn.commit();
      return result;
    }
  }
  template <typename F>
  auto read(F&& f) {
    std::lock_guard lock(read_mutex_);
    return f(*reader_);
  }

 private:
  std::mutex write_mutex_, read_mutex_;
  std::unique_ptr<Db> writer_, reader_;
  bool fresh_ = false;
};

}  // namespace umpteenth::store
