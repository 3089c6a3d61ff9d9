// Housekeeping on a thread of its own: looks whether others moved the ref, and joins small packs.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "store/database.h"
#include "store/writer.h"

namespace umpteenth::store {

class Keeper {
 public:
  Keeper(std::filesystem::path repository, Database& database, Writer& writer);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

 private:
  void run();
  void look_at_ref();

  const std::filesystem::path repository_;
  Database& database_;
  Writer& writer_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::string last_refusal_;
  std::thread thread_;
};

// Joins packs of umpd's own of about one size, where there are many: the old ones are retired.
// How many packs were joined.
size_t compact_packs(const std::filesystem::path& repository, Database& database);
// Unlinks packs that were retired a while ago, by the time of their successor.
void remove_retired(const std::filesystem::path& repository, Database& database,
                    std::chrono::seconds age);

}  // namespace umpteenth::store
