#include "runs/registry.h"

#include "base/crypto.h"
#include "base/error.h"

namespace umpteenth::runs {
namespace {

// A dual-stack socket reports IPv4 peers as ::ffff:a.b.c.d.
std::string_view plain(std::string_view address) {
  constexpr std::string_view kMapped = "::ffff:";
  if (address.starts_with(kMapped) && address.find('.') != std::string_view::npos)
    address.remove_prefix(kMapped.size());
  return address;
}

}  // namespace

std::string Registry::add(std::shared_ptr<LiveRun> run, std::string endpoint) {
  if (endpoint.empty()) throw Error(Code::internal, "a run's token needs an endpoint");
  std::string token = crypto::base64url(crypto::random_bytes(32));
  const std::string hash = crypto::hex(crypto::sha256(token));
  const std::string uid = run->info().uid;
  const std::lock_guard lock(mutex_);
  if (const auto old = by_uid_.find(uid); old != by_uid_.end())
    uid_by_token_hash_.erase(old->second.token_hash);
  by_uid_[uid] = Entry{hash, std::string(plain(endpoint)), std::move(run)};
  uid_by_token_hash_[hash] = uid;
  return token;
}

void Registry::remove(std::string_view run_uid) {
  const std::string uid(run_uid);
  std::function<void(const std::string&)> removed;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = by_uid_.find(uid);
    if (entry == by_uid_.end()) return;
    uid_by_token_hash_.erase(entry->second.token_hash);
    by_uid_.erase(entry);
    removed = removed_;
  }
  if (removed) removed(uid);
}

void Registry::on_remove(std::function<void(const std::string& run_uid)> listener) {
  const std::lock_guard lock(mutex_);
  removed_ = std::move(listener);
}

std::shared_ptr<LiveRun> Registry::find(std::string_view token, std::string_view endpoint) const {
  const std::string hash = crypto::hex(crypto::sha256(token));
  const std::lock_guard lock(mutex_);
  const auto uid = uid_by_token_hash_.find(hash);
  if (uid == uid_by_token_hash_.end()) return nullptr;
  const Entry& entry = by_uid_.at(uid->second);
  return entry.endpoint == plain(endpoint) ? entry.run : nullptr;
}

std::shared_ptr<LiveRun> Registry::find_by_endpoint(std::string_view endpoint) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [uid, entry] : by_uid_)
    if (entry.endpoint == plain(endpoint)) return entry.run;
  return nullptr;
}

std::shared_ptr<LiveRun> Registry::find_by_uid(std::string_view run_uid) const {
  const std::lock_guard lock(mutex_);
  const auto entry = by_uid_.find(std::string(run_uid));
  return entry == by_uid_.end() ? nullptr : entry->second.run;
}

std::vector<std::shared_ptr<LiveRun>> Registry::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<LiveRun>> runs;
  runs.reserve(by_uid_.size());
  for (const auto& [uid, entry] : by_uid_) runs.push_back(entry.run);
  return runs;
}

}  // namespace umpteenth::runs
