#include "store/layout.h"

#include <algorithm>
#include <vector>

#include "base/crypto.h"
#include "base/error.h"

namespace umpteenth::store {
namespace {

constexpr size_t kMaxPart = 253;

// DNS-1123 subdomains are stricter; this is what a path needs to be safe in any checkout.
bool safe_part(std::string_view part) {
  if (part.empty() || part.size() > kMaxPart || part.front() == '.' || part.front() == '_')
    return false;
  return std::all_of(part.begin(), part.end(), [](unsigned char c) {
    return c > 0x20 && c < 0x7f && c != '/' && c != '\\' && c != ':' && c != '"';
  });
}

}  // namespace

void check_key(const Key& key) {
  if (!safe_part(key.kind) || !safe_part(key.name) || (!key.ns.empty() && !safe_part(key.ns)))
    throw Error(Code::bad_request, "store: " + json::quote(to_string(key)) +
                                       " cannot be the name of a file in the store");
}

std::string workspace_folder(const Key& key) { return key.ns.empty() ? kClusterFolder : key.ns; }
std::string file_name(const Key& key) { return key.name + kSuffix; }

std::string shard_of(std::string_view name) {
  return crypto::hex(crypto::sha256(name)).substr(0, 2);
}

bool is_shard_name(std::string_view folder) {
  return folder.size() == 2 && std::all_of(folder.begin(), folder.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string flat_path(const Key& key) {
  return workspace_folder(key) + "/" + key.kind + "/" + file_name(key);
}
std::string split_path(const Key& key) {
  return workspace_folder(key) + "/" + key.kind + "/" + shard_of(key.name) + "/" + file_name(key);
}

std::optional<Key> key_of_path(std::string_view path) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  if (parts.size() != 3 && parts.size() != 4) return std::nullopt;
  std::string_view name = parts.back();
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(sizeof kSuffix - 1);
  if (parts.size() == 4 && parts[2] != shard_of(name)) return std::nullopt;
  const bool cluster = parts[0] == kClusterFolder;
  if (!safe_part(name) || !safe_part(parts[1]) || (!cluster && !safe_part(parts[0])))
    return std::nullopt;
  return Key{std::string(parts[1]), cluster ? "" : std::string(parts[0]), std::string(name)};
}

}  // namespace umpteenth::store
