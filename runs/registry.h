// token → live run. A token is worth something only together with its run's endpoint, and only
// while the run is live. Tokens are kept as sha256.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runs/live_run.h"

namespace umpteenth::runs {

class Registry {
 public:
  // Returns the run's fresh token. endpoint: the address the sandbox reaches the broker on.
  std::string add(std::shared_ptr<LiveRun> run, std::string endpoint);
  void remove(std::string_view run_uid);  // its token is worthless from here on
  // Called after each removal, on the thread that asked for it. Before any run; one listener.
  void on_remove(std::function<void(const std::string& run_uid)> listener);
  // Null for a wrong token or endpoint; the caller cannot tell which.
  std::shared_ptr<LiveRun> find(std::string_view token, std::string_view endpoint) const;
  // The run whose sandbox has that endpoint; for what needs no token.
  std::shared_ptr<LiveRun> find_by_endpoint(std::string_view endpoint) const;
  std::shared_ptr<LiveRun> find_by_uid(std::string_view run_uid) const;
  std::vector<std::shared_ptr<LiveRun>> all() const;

 private:
  struct Entry {
    std::string token_hash, endpoint;
    std::shared_ptr<LiveRun> run;
  };
  mutable std::mutex mutex_;
  std::function<void(const std::string&)> removed_;
  std::map<std::string, Entry> by_uid_;
  std::map<std::string, std::string, std::less<>> uid_by_token_hash_;
};

}  // namespace umpteenth::runs
