#include "store/sealer.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "store/pack.h"
#include "store/recovery.h"

namespace umpteenth::store {
namespace fs = std::filesystem;
namespace {

constexpr auto kRetry = std::chrono::milliseconds(500);
constexpr size_t kRowsATransaction = 500;  // so that status writes never wait long

void publish(const Generation& generation, const fs::path& repository) {
  const auto now = read_ref(repository, kMainRef);
  if (now && *now != generation.before && *now != generation.tip)
    log::error("refs/heads/main was moved past its lock; what it named is kept",
               {{"commit", now->hex()}, {"ref", keep_recovered(repository, *now)}});
  write_ref(repository, kMainRef, generation.tip);
}

void write_rows(const Generation& generation, const std::string& pack, Database& database) {
  auto row = generation.rows.begin();
  auto line = generation.history.begin();
  while (row != generation.rows.end() || line != generation.history.end()) {
    database.write([&](Db& db) {
      for (size_t n = 0; n < kRowsATransaction && line != generation.history.end(); ++n, ++line)
        put_history(db, *line);
      for (size_t n = 0; n < kRowsATransaction && row != generation.rows.end(); ++n, ++row)
        if (row->second)
          put_object(db, *row->second);
        else
          remove_object(db, row->first, generation.revision);
    });
  }
  database.write([&](Db& db) {
    put_pack(db, {pack, true, false});
    put_meta(db, kMetaHead, generation.tip.hex());
    raise_revision(db, generation.revision);
  });
}

}  // namespace

std::string seal_objects(const Generation& generation, const fs::path& repository) {
  const Pack pack = build_pack(generation.objects);
  const fs::path folder = repository / "objects/pack";
  // Until the ref names them, git gc --prune=now would take these objects for garbage.
  const fs::path keep = folder / (pack.name() + ".keep");
  { Fd fd(::open(keep.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0444)); }
  Defer unkeep([&] { ::unlink(keep.c_str()); });
  write_pack(folder, pack);
  publish(generation, repository);
  return pack.name();
}

Error no_room(const Error& cause) {
  return Error(Code::unavailable, "store: no room to write (" + cause.message() +
                                      "); free some space, writes then resume");
}

void seal(const Generation& generation, const fs::path& repository, Database& database) {
  write_rows(generation, seal_objects(generation, repository), database);
}

Sealer::Sealer(fs::path repository, Database& database, RefLock& lock, uint64_t sealed_through,
               std::function<void(const Generation&)> sealed)
    : repository_(std::move(repository)),
      database_(database),
      lock_(lock),
      sealed_(std::move(sealed)),
      sealed_through_(sealed_through),
      thread_([this] { run(); }) {}

Sealer::~Sealer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Sealer::push(Generation generation) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(generation));
  }
  changed_.notify_all();
}

bool Sealer::wait_sealed(uint64_t generation) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return sealed_through_ >= generation || !trouble_.empty(); });
  return sealed_through_ >= generation;
}

std::string Sealer::trouble() const {
  std::lock_guard lock(mutex_);
  return trouble_;
}

bool Sealer::try_seal(const Generation& generation) {
  std::string trouble;
  try {
    if (generation.commits > 0) seal(generation, repository_, database_);
  } catch (const Error& e) {
    // The writer must hear of it; there is no caller to throw to.
    trouble = e.message();
    if (e.code() == Code::unavailable) {
      trouble = no_room(e).message();
    } else {
      broken_ = true;
      trouble = "store: writing the repository failed (" + trouble +
                "); nothing acknowledged is lost, restart umpd when the disk is sound";
    }
  }
  std::lock_guard lock(mutex_);
  if (!trouble.empty() && trouble_.empty()) log::error("sealing failed", {{"error", trouble}});
  if (trouble.empty() && !trouble_.empty()) log::info("sealing works again");
  trouble_ = trouble;
  if (trouble.empty()) sealed_through_ = generation.number;
  changed_.notify_all();
  return trouble.empty();
}

void Sealer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty() || broken_) return;
    const Generation& generation = queue_.front();  // push_back leaves it in place
    lock.unlock();
    const bool done = try_seal(generation);
    if (done) {
      sealed_(generation);
      lock_.drop();
    }
    lock.lock();
    if (done) {
      queue_.pop_front();
    } else {
      if (broken_ || stopping_) return;
      changed_.wait_for(lock, kRetry, [&] { return stopping_; });
    }
  }
}

}  // namespace umpteenth::store
