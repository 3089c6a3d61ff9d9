#include "server/tokens.h"

#include "apis/object.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/log.h"

namespace umpteenth::server {
namespace {

constexpr char kSpace[] = "tokens";
constexpr char kAdminId[] = "admin";
constexpr size_t kMaxTokens = 10'000;
constexpr size_t kMaxTokenLength = 512;

std::string hash_of(std::string_view token) { return crypto::hex(crypto::sha256(token)); }

[[noreturn]] void refuse(const std::string& field, const std::string& message,
                         const std::string& reason) {
  throw Error(Code::invalid, field + ": " + message, {{field, message, reason}});
}

void check(const TokenInfo& info, Time now) {
  if (info.name.empty()) refuse("name", "Required value", "FieldValueRequired");
  if (info.name.size() > 100)
    refuse("name", "Too long: may not be more than 100 bytes", "FieldValueTooLong");
  if (info.role != Role::instance_admin && info.workspaces.empty())
    refuse("workspaces",
           "Required value: a token of role " + std::string(to_string(info.role)) +
               " names the workspaces it is for",
           "FieldValueRequired");
  for (const std::string& workspace : info.workspaces)
    if (!apis::valid_dns_label(workspace))
      refuse("workspaces", "Invalid value: " + json::quote(workspace) + ": must be a DNS label",
             "FieldValueInvalid");
  if (!info.expires.empty() && parse_time(info.expires) <= now)
    refuse("expires", "Invalid value: " + json::quote(info.expires) + ": must be in the future",
           "FieldValueInvalid");
}

}  // namespace

json::Value to_json(const TokenInfo& info) {
  json::Value v = json::Value::object({{"id", info.id},
                                       {"name", info.name},
                                       {"role", to_string(info.role)},
                                       {"workspaces", json::Value::strings(info.workspaces)},
                                       {"creator", info.creator},
                                       {"created", info.created}});
  if (!info.expires.empty()) v.set("expires", info.expires);
  return v;
}

Tokens::Tokens(store::Store& store, Clock& clock) : store_(store), clock_(clock) { reload(); }

void Tokens::reload() {
  const auto rows = store_.row_list(kSpace);
  std::lock_guard lock(mutex_);
  by_id_.clear();
  id_by_hash_.clear();
  for (const auto& [id, text] : rows) {
    try {
      const json::Value row = json::parse(text);
      Entry entry;
      entry.info = {id,
                    row.get_string("name"),
                    role_from(row.get_string("role")),
                    {},
                    row.get_string("creator"),
                    row.get_string("created"),
                    row.get_string("expires")};
      for (const json::Value& workspace : row.get("workspaces").items())
        entry.info.workspaces.push_back(workspace.as_string());
      entry.hash = row.get_string("hash");
      id_by_hash_[entry.hash] = id;
      by_id_[id] = std::move(entry);
    } catch (const Error& e) {  // one broken row must not lock everybody out
      log::error("token row is not readable, skipped", {{"id", id}, {"error", e.message()}});
    }
  }
}

std::optional<Identity> Tokens::find(std::string_view token) const {
  if (token.empty() || token.size() > kMaxTokenLength) return std::nullopt;
  const std::string hash = hash_of(token);
  std::lock_guard lock(mutex_);
  const auto id = id_by_hash_.find(hash);
  if (id == id_by_hash_.end()) return std::nullopt;
  const Entry& entry = by_id_.at(id->second);
  if (!crypto::equal_constant_time(entry.hash, hash)) return std::nullopt;
  const TokenInfo& info = entry.info;
  if (!info.expires.empty() && parse_time(info.expires) <= clock_.now()) return std::nullopt;
  Identity who;
  who.instance_admin = info.role == Role::instance_admin;
  who.api_token = info.id != kAdminId;
  who.username = who.api_token ? "token:" + info.name : "admin";
  who.uid = info.id;
  for (const std::string& workspace : info.workspaces) who.workspaces[workspace] = info.role;
  return who;
}

bool Tokens::has_admin() const {
  std::lock_guard lock(mutex_);
  return by_id_.contains(kAdminId);
}

std::string Tokens::rotate_admin() {
  const std::string token = crypto::random_token("ump_");
  Entry entry{{kAdminId, "admin", Role::instance_admin, {}, "umpd", format_time(clock_.now()), ""},
              hash_of(token)};
  put(entry);
  return token;
}

NewToken Tokens::create(TokenInfo info) {
  const Time now = clock_.now();
  check(info, now);
  {
    std::lock_guard lock(mutex_);
    if (by_id_.size() >= kMaxTokens)
      throw Error(Code::invalid, "there are " + std::to_string(kMaxTokens) +
                                     " tokens, which is the limit: revoke some first");
  }
  info.id = crypto::uuid4();
  info.created = format_time(now);
  NewToken made{info, crypto::random_token("ump_")};
  put({info, hash_of(made.token)});
  return made;
}

void Tokens::put(const Entry& entry) {
  json::Value row = to_json(entry.info);
  row.set("hash", entry.hash);
  store_.row_put(kSpace, entry.info.id, row.dump());
  std::lock_guard lock(mutex_);
  if (const auto old = by_id_.find(entry.info.id); old != by_id_.end())
    id_by_hash_.erase(old->second.hash);
  id_by_hash_[entry.hash] = entry.info.id;
  by_id_[entry.info.id] = entry;
}

bool Tokens::revoke(std::string_view id) {
  if (id == kAdminId) throw Error(Code::forbidden, "the admin token is rotated, never revoked");
  if (!store_.row_remove(kSpace, id)) return false;
  std::lock_guard lock(mutex_);
  if (const auto found = by_id_.find(id); found != by_id_.end()) {
    id_by_hash_.erase(found->second.hash);
    by_id_.erase(found);
  }
  return true;
}

std::vector<TokenInfo> Tokens::list() const {
  std::lock_guard lock(mutex_);
  std::vector<TokenInfo> all;
  for (const auto& [id, entry] : by_id_) all.push_back(entry.info);
  return all;
}

}  // namespace umpteenth::server
