// The thread that turns generations into packs, moves the ref and writes the derived rows. A full
// disk makes it try again and again; any other failure ends it for good: nothing is known of the
// files then, and the journal has what they should hold.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "store/database.h"
#include "store/ledger.h"
#include "store/repository.h"

namespace umpteenth::store {

// One generation's pack and the ref, durably; idempotent. The pack's name.
std::string seal_objects(const Generation& generation, const std::filesystem::path& repository);
// Its rows too.
void seal(const Generation& generation, const std::filesystem::path& repository,
          Database& database);

// What callers are told where the disk is full.
Error no_room(const Error& cause);

class Sealer {
 public:
  // sealed: called on this thread after each generation.
  Sealer(std::filesystem::path repository, Database& database, RefLock& lock,
         uint64_t sealed_through, std::function<void(const Generation&)> sealed);
  ~Sealer();  // seals what is queued, unless the disk is full
  Sealer(const Sealer&) = delete;
  Sealer& operator=(const Sealer&) = delete;

  void push(Generation generation);
  // False where that cannot be waited for: see trouble().
  bool wait_sealed(uint64_t generation);
  std::string trouble() const;  // "" while all is well
  bool broken() const { return broken_; }

 private:
  void run();
  bool try_seal(const Generation& generation);

  const std::filesystem::path repository_;
  Database& database_;
  RefLock& lock_;
  std::function<void(const Generation&)> sealed_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Generation> queue_;
  uint64_t sealed_through_;
  std::string trouble_;
  std::atomic<bool> broken_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace umpteenth::store
