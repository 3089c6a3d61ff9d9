// D/blobs/ab/<sha256>: bytes kept once, with the rows that say who needs them. Thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "store/sqlite.h"

namespace umpteenth::store {

class Blobs {
 public:
  // rows: runs its argument durably in the store's next transaction.
  using Rows = std::function<void(std::function<void(Db&)>)>;
  Blobs(std::filesystem::path folder, Rows rows);

  std::string put(std::string_view owner, std::string_view bytes);
  std::string get(std::string_view digest) const;
  void remove(std::string_view owner);
  // Files that no row names, as a crash between the two leaves them.
  void sweep(Db& db);

 private:
  std::filesystem::path path_of(std::string_view digest) const;

  std::filesystem::path folder_;
  Rows rows_;
  std::mutex mutex_;  // a file goes only when no put is about to name it
};

bool valid_digest(std::string_view digest);

}  // namespace umpteenth::store
