#include "store/keeper.h"

#include <sys/stat.h>

#include <ctime>

#include "base/error.h"
#include "base/log.h"
#include "store/pack.h"
#include "store/repository.h"

namespace umpteenth::store {
namespace fs = std::filesystem;
namespace {

constexpr auto kLook = std::chrono::milliseconds(250);
constexpr auto kCompactEvery = std::chrono::seconds(15);
constexpr std::chrono::seconds kRetiredFor(90);  // readers may have mapped the old index

struct Tier {
  uintmax_t up_to_bytes;
  size_t count;
};
constexpr Tier kTiers[] = {{4U << 20, 64}, {256U << 20, 16}};
constexpr uintmax_t kMaxJoined = uintmax_t{1} << 30;

bool gc_is_running(const fs::path& repository) { return fs::exists(repository / "gc.pid"); }

}  // namespace

size_t compact_packs(const fs::path& repository, Database& database) {
  const fs::path folder = repository / "objects/pack";
  if (gc_is_running(repository)) return 0;
  std::vector<std::vector<std::string>> tiers(std::size(kTiers));
  std::vector<uintmax_t> bytes(std::size(kTiers));
  for (const PackRow& row : database.read([](Db& db) { return read_packs(db); })) {
    std::error_code missing;
    const uintmax_t size = fs::file_size(folder / (row.name + ".pack"), missing);
    if (missing || !row.own || row.retired) continue;
    for (size_t t = 0; t < std::size(kTiers); ++t) {
      if (size > kTiers[t].up_to_bytes) continue;
      if (bytes[t] + size <= kMaxJoined) {
        bytes[t] += size;
        tiers[t].push_back(row.name);
      }
      break;
    }
  }
  for (size_t t = 0; t < std::size(kTiers); ++t) {
    if (tiers[t].size() < kTiers[t].count) continue;
    const std::string joined = join_packs(folder, tiers[t]);
    database.write([&](Db& db) {
      for (const std::string& name : tiers[t]) put_pack(db, {name, true, true});
      put_pack(db, {joined, true, false});
      put_meta(db, "retired", std::to_string(std::time(nullptr)));
    });
    log::info("packs joined", {{"packs", tiers[t].size()}, {"into", joined}});
    return tiers[t].size();
  }
  return 0;
}

void remove_retired(const fs::path& repository, Database& database, std::chrono::seconds age) {
  const auto [when, packs] =
      database.read([](Db& db) { return std::pair(get_meta(db, "retired"), read_packs(db)); });
  if (when.empty() || gc_is_running(repository)) return;
  if (std::time(nullptr) - std::strtoll(when.c_str(), nullptr, 10) < age.count()) return;
  std::vector<std::string> gone;
  for (const PackRow& row : packs) {
    if (!row.retired) continue;
    std::error_code ignored;
    fs::remove(repository / "objects/pack" / (row.name + ".idx"), ignored);
    fs::remove(repository / "objects/pack" / (row.name + ".pack"), ignored);
    gone.push_back(row.name);
  }
  if (gone.empty()) return;
  database.write([&](Db& db) {
    for (const std::string& name : gone) forget_pack(db, name);
  });
}

Keeper::Keeper(fs::path repository, Database& database, Writer& writer)
    : repository_(std::move(repository)),
      database_(database),
      writer_(writer),
      thread_([this] { run(); }) {}

Keeper::~Keeper() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Keeper::look_at_ref() {
  try {
    if (writer_.moved_by_others() || !writer_.unblocked()) writer_.look();
    last_refusal_.clear();
  } catch (const Error& e) {  // health says it too; it is tried again
    if (e.message() != last_refusal_)
      log::warn("edits by git are not taken over yet", {{"error", e.message()}});
    last_refusal_ = e.message();
  }
}

void Keeper::run() {
  auto next_compaction = std::chrono::steady_clock::now() + kCompactEvery;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kLook, [this] { return stopping_; })) {
    lock.unlock();
    look_at_ref();
    if (std::chrono::steady_clock::now() >= next_compaction) {
      try {
        remove_retired(repository_, database_, kRetiredFor);
        compact_packs(repository_, database_);
      } catch (const Error& e) {  // nothing depends on it
        log::warn("packs were not joined", {{"error", e.message()}});
      }
      next_compaction = std::chrono::steady_clock::now() + kCompactEvery;
    }
    lock.lock();
  }
}

}  // namespace umpteenth::store
