// Git packs written by hand: one for each generation of commits, and several joined into one.
// Every delta is relative to an object of the same pack, so packs can be joined without unpacking.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "store/git_object.h"

namespace umpteenth::store {

struct PackEntry {
  Oid id;
  uint32_t crc = 0;
  uint64_t offset = 0;
};

struct Pack {
  std::string bytes;
  std::vector<PackEntry> entries;
  std::string name() const;  // pack-<hex of the trailer>
};

// An object that is in the list twice is written once.
Pack build_pack(const std::vector<PackObject>& objects);
std::string build_index(std::vector<PackEntry> entries, std::string_view pack_trailer);

// Durable when it returns: the pack before its index, the folder last. Error(unavailable) for a
// full disk, Error(internal) for any other failure of a write or sync; nothing is left then.
void write_pack(const std::filesystem::path& folder, const Pack& pack);

// pack-*.{pack,idx}: whether trailer and index fit what is in the file.
enum class PackState { good, index_broken, broken };
PackState check_pack(const std::filesystem::path& pack_file);

// A new pack with all that these hold; the old files stay. The new pack's name.
std::string join_packs(const std::filesystem::path& folder, const std::vector<std::string>& names);

inline constexpr char kPackTemporary[] = "tmp_umpd_";

}  // namespace umpteenth::store
