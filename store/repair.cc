#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "store/pack.h"
#include "store/recovery.h"

namespace umpteenth::store {
namespace fs = std::filesystem;
namespace {

void remove_pack(const fs::path& folder, const std::string& name) {
  fs::remove(folder / (name + ".idx"));  // a reader that sees the index wants the pack
  fs::remove(folder / (name + ".pack"));
}

void quarantine(const fs::path& repository, const std::string& name) {
  const fs::path folder = repository / "objects/pack", aside = repository / "umpd/quarantine";
  fs::create_directories(aside);
  for (const char* extension : {".idx", ".pack"}) {
    std::error_code missing;
    fs::rename(folder / (name + extension), aside / (name + extension), missing);
  }
  fsync_path(aside);
  log::warn("a torn pack is put aside; the journal has what it held", {{"pack", name}});
}

void sweep_leftovers(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    const bool temporary = path.filename().string().starts_with(kPackTemporary);
    const bool our_keep = path.extension() == ".keep" && fs::file_size(path) == 0;
    fs::path pack = path;
    const bool lone_index =
        path.extension() == ".idx" && !fs::exists(pack.replace_extension(".pack"));
    if (temporary || our_keep || lone_index) fs::remove(path);
  }
}

}  // namespace

void repair_packs(const fs::path& repository, Database& database) {
  const fs::path folder = repository / "objects/pack";
  sweep_leftovers(folder);
  std::set<std::string> known;
  for (const PackRow& row : database.read([](Db& db) { return read_packs(db); })) {
    if (row.retired) remove_pack(folder, row.name);
    const bool there = fs::exists(folder / (row.name + ".pack"));
    // An index is small: that it is there at all is looked at each time.
    if (there && fs::exists(folder / (row.name + ".idx")))
      known.insert(row.name);
    else if (!there)
      database.write([&](Db& db) { forget_pack(db, row.name); });
  }
  std::vector<fs::path> unknown;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".pack" && !known.contains(entry.path().stem().string()))
      unknown.push_back(entry.path());
  for (const fs::path& pack : unknown) {
    const std::string name = pack.stem().string();
    const PackState state = check_pack(pack);
    if (state == PackState::broken) {
      quarantine(repository, name);
      continue;
    }
    if (state == PackState::index_broken) rebuild_index(repository, pack);
    database.write([&](Db& db) { put_pack(db, {name, false, false}); });
  }
  fsync_path(folder);
}

}  // namespace umpteenth::store
