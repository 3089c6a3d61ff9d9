// Git's objects as values: ids, types, and what the sealer puts into a pack. Pure.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace umpteenth::store {

struct Oid {
  std::array<unsigned char, 20> bytes{};
  auto operator<=>(const Oid&) const = default;
  bool is_null() const { return *this == Oid{}; }
  std::string_view view() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string hex() const;
  static Oid from_bytes(std::string_view twenty);
  static std::optional<Oid> from_hex(std::string_view forty);
};

struct OidHash {
  size_t operator()(const Oid& id) const {
    size_t h = 0;
    std::memcpy(&h, id.bytes.data(), sizeof h);
    return h;
  }
};

enum class ObjectType : unsigned char { commit = 1, tree = 2, blob = 3 };
Oid hash_object(ObjectType type, std::string_view content);

// A whole object, or for trees one edit of the version before it, which is in the same pack.
struct PackObject {
  ObjectType type = ObjectType::blob;
  Oid id;
  std::string data;  // the content; of a delta the inserted bytes
  bool delta = false;
  Oid base;
  size_t base_size = 0, offset = 0, removed = 0;
};

struct CommitText {
  Oid tree, parent;  // parent null: a first commit
  std::string actor;
  int64_t seconds = 0;
  std::string message;
  uint64_t first_revision = 0, last_revision = 0;
  Oid base;  // of a commit that answers a plain-git edit: where umpd's own history stood
};
std::string to_string(const CommitText& commit);

// What to_string wrote, or any other commit: then without actor and revisions.
struct ParsedCommit {
  Oid tree;
  std::optional<Oid> parent;
  std::string author;
  int64_t seconds = 0;
  std::string subject, actor;
  uint64_t first_revision = 0, last_revision = 0;
  std::optional<Oid> base;
  bool ours() const { return last_revision != 0; }
};
ParsedCommit parse_commit(std::string_view text);  // Error(internal) where it is none

}  // namespace umpteenth::store
