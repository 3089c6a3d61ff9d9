// Garbage collection, on one thread fed by the store's events: dependents go when their last owner
// went (by ownerReferences' uid), a workspace that is being deleted loses its content and then
// itself, and old Events are pruned. What fails is tried again; one bad object blocks no other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "store/store.h"

namespace umpteenth::server {

inline constexpr char kContentFinalizer[] = "umpteenth.dev/content";

struct EventBounds {
  std::chrono::hours keep{24};
  size_t per_workspace = 2000;
};

class Collector {
 public:
  Collector(store::Store& store, Clock& clock, EventBounds bounds = {});
  ~Collector();
  void start();  // what happened before is swept first

  // At once, on the caller's thread: for Foreground and Orphan.
  void remove_dependents(const std::string& owner_uid);
  void orphan_dependents(const std::string& owner_uid, const std::string& actor);
  void prune_events();

 private:
  void run(std::stop_token stop);
  void on_event(const store::Event& event);
  bool work(std::vector<store::RecordPtr> removed, std::set<std::string> workspaces, bool sweep);
  bool collect(const std::set<std::string>* gone_uids);
  bool collect_record(const store::Record& record, const std::set<std::string>* gone_uids);
  bool empty_workspace(const std::string& name);
  bool owner_lives(const json::Value& reference, const std::string& ns) const;
  void remove(const store::Record& record);

  store::Store& store_;
  Clock& clock_;
  EventBounds bounds_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<store::RecordPtr> removed_;
  std::set<std::string> workspaces_;  // that are being deleted and may have become empty
  std::unique_ptr<store::Subscription> subscription_;
  std::jthread thread_;
};

}  // namespace umpteenth::server
