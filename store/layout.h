// Where an object's file is in the repository:
//   <workspace>/<plural>/<name>.yaml         cluster-scoped kinds: _cluster/<plural>/<name>.yaml
// A folder that grew beyond kSplitAbove files has its files in 256 folders named by the first two
// hex digits of sha256(name), until fewer than kJoinBelow are left. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace umpteenth::store {

inline constexpr char kClusterFolder[] = "_cluster";
inline constexpr char kSuffix[] = ".yaml";
inline constexpr size_t kSplitAbove = 512;
inline constexpr size_t kJoinBelow = 256;

// Error(bad_request) for a key that cannot be a path.
void check_key(const Key& key);
std::string workspace_folder(const Key& key);
std::string file_name(const Key& key);
std::string shard_of(std::string_view name);
bool is_shard_name(std::string_view folder);
// Both places where a key's file may be, the flat one first.
std::string flat_path(const Key& key);
std::string split_path(const Key& key);
std::optional<Key> key_of_path(std::string_view path);

}  // namespace umpteenth::store
