// The state of a job, shared by its runs: rows (`state/<ns>/<job>`, key) of the store. One object a
// job and process, so that the limits hold for parallel runs too. Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "store/store.h"

namespace umpteenth::runs {

inline constexpr size_t kMaxStateKeys = 1000;
inline constexpr size_t kMaxStateKeyCharacters = 200;
inline constexpr size_t kMaxStateValueBytes = 1U << 20;
inline constexpr size_t kMaxStateBytes = 16U << 20;

std::string state_space(std::string_view ns, std::string_view job);

class JobState {
 public:
  // The one object of that job; it lives as long as someone holds it.
  static std::shared_ptr<JobState> of(store::Store& store, const std::string& space);

  JobState(store::Store& store, std::string space) : store_(store), space_(std::move(space)) {}
  std::optional<std::string> get(std::string_view key) const;
  void set(std::string_view key, std::string_view value);  // Error(invalid) names the limit
  json::Value all() const;
  std::vector<std::string> keys();  // without reading the values where they were read before

 private:
  void load_sizes();
  std::string refusal(std::string_view key, size_t value_bytes) const;

  store::Store& store_;
  const std::string space_;
  std::mutex mutex_;
  std::optional<std::map<std::string, size_t, std::less<>>> sizes_;  // key and value, by key
};

}  // namespace umpteenth::runs
