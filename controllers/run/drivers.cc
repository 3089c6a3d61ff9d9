#include "controllers/run/drivers.h"

#include "apis/object.h"
#include "base/log.h"

namespace umpteenth::controllers::run {

bool Drivers::reserve(const std::string& uid) {
  std::lock_guard lock(mutex_);
  if (stopping_) return false;
  return entries_.try_emplace(uid).second;
}

void Drivers::release(const std::string& uid) {
  std::lock_guard lock(mutex_);
  entries_.erase(uid);
  changed_.notify_all();
}

void Drivers::reap() {
  std::vector<std::thread> ending;
  {
    std::lock_guard lock(mutex_);
    ending.swap(finished_);
  }
  for (auto& thread : ending) {
    if (thread.joinable()) thread.join();
  }
}

void Drivers::start(const store::Record& claimed) {
  reap();
  auto driver = std::make_shared<Driver>(services_, claimed);
  std::lock_guard lock(mutex_);
  Entry& entry = entries_[driver->uid()];
  entry.driver = driver;
  if (stopping_) driver->stop(Stop::shutdown);
  entry.thread = std::thread([this, driver] {
    driver->execute();
    {
      std::lock_guard inner(mutex_);
      auto own = entries_.find(driver->uid());
      finished_.push_back(std::move(own->second.thread));
      entries_.erase(own);
    }
    ended_(driver->key());
    std::lock_guard inner(mutex_);
    changed_.notify_all();
  });
}

bool Drivers::driving(const std::string& uid) const {
  std::lock_guard lock(mutex_);
  return entries_.contains(uid);
}

std::set<std::string> Drivers::driven() const {
  std::set<std::string> uids;
  std::lock_guard lock(mutex_);
  for (const auto& [uid, entry] : entries_) uids.insert(uid);
  return uids;
}

void Drivers::stop(const std::string& uid, Stop why) {
  std::lock_guard lock(mutex_);
  auto entry = entries_.find(uid);
  if (entry != entries_.end() && entry->second.driver) entry->second.driver->stop(why);
}

bool Drivers::stop_all(Duration within) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  for (auto& [uid, entry] : entries_) {
    if (entry.driver) entry.driver->stop(Stop::shutdown);
  }
  bool all = changed_.wait_for(lock, within, [this] { return entries_.empty(); });
  for (auto& [uid, entry] : entries_) {
    if (entry.thread.joinable()) entry.thread.detach();
  }
  lock.unlock();
  reap();
  if (!all) log::error("runs did not end in time", {{"milliseconds", within.count()}});
  return all;
}

}  // namespace umpteenth::controllers::run
