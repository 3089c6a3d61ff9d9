// Bearer tokens: random, kept only as sha256 in the store's rows (space "tokens"), looked up in
// memory. Thread-safe; find() never touches the disk, so that it may run on the io thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "server/authority.h"
#include "store/store.h"

namespace umpteenth::server {

struct TokenInfo {
  std::string id, name;
  Role role = Role::member;
  std::vector<std::string> workspaces;
  std::string creator, created, expires;  // RFC 3339; expires "" = never
};

struct NewToken {
  TokenInfo info;
  std::string token;  // shown once
};

class Tokens {
 public:
  Tokens(store::Store& store, Clock& clock);

  // Who presents it; nullopt for a wrong, expired or revoked one.
  std::optional<Identity> find(std::string_view token) const;

  bool has_admin() const;
  std::string rotate_admin();  // the new one; the one before is worthless from here on

  // Error(invalid) names the field: name (1–100 characters), role, workspaces (at least one but for
  // InstanceAdmin), expires.
  NewToken create(TokenInfo info);
  bool revoke(std::string_view id);  // false where absent; the admin token is only rotated
  std::vector<TokenInfo> list() const;
  void reload();  // what another process wrote

 private:
  struct Entry {
    TokenInfo info;
    std::string hash;
  };
  void put(const Entry& entry);

  store::Store& store_;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> by_id_;
  std::map<std::string, std::string, std::less<>> id_by_hash_;
};

json::Value to_json(const TokenInfo& info);

}  // namespace umpteenth::server
