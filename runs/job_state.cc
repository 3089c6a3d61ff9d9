#include "runs/job_state.h"

#include <utility>

#include "base/error.h"
#include "runs/text.h"

namespace umpteenth::runs {
namespace {

void check(std::string_view key, std::string_view value) {
  if (key.empty()) throw Error(Code::invalid, "the state key is empty");
  if (!is_utf8(key) || !is_utf8(value))
    throw Error(Code::invalid, "state keys and values must be UTF-8 text");
  if (key.find('\0') != std::string_view::npos)
    throw Error(Code::invalid, "a state key must not contain NUL");
  if (count_characters(key) > kMaxStateKeyCharacters)
    throw Error(Code::invalid, "the state key is longer than " +
                                   std::to_string(kMaxStateKeyCharacters) + " characters");
  if (value.size() > kMaxStateValueBytes)
    throw Error(Code::invalid, "the state value of \"" + std::string(key) + "\" is " +
                                   std::to_string(value.size()) + " bytes, more than 1 MiB");
}

}  // namespace

std::string state_space(std::string_view ns, std::string_view job) {
  return "state/" + std::string(ns) + "/" + std::string(job);
}

std::shared_ptr<JobState> JobState::of(store::Store& store, const std::string& space) {
  static std::mutex mutex;
  static std::map<std::pair<store::Store*, std::string>, std::weak_ptr<JobState>> known;
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<JobState>& slot = known[{&store, space}];
  std::shared_ptr<JobState> state = slot.lock();
  if (!state) {
    state = std::make_shared<JobState>(store, space);
    slot = state;
  }
  return state;
}

std::optional<std::string> JobState::get(std::string_view key) const {
  return store_.row_get(space_, key);
}

void JobState::load_sizes() {
  sizes_.emplace();
  for (const auto& [key, value] : store_.row_list(space_))
    sizes_->emplace(key, key.size() + value.size());
}

std::string JobState::refusal(std::string_view key, size_t value_bytes) const {
  size_t total = key.size() + value_bytes;
  size_t keys = 1;
  for (const auto& [other, size] : *sizes_) {
    if (other == key) continue;
    total += size;
    ++keys;
  }
  if (keys > kMaxStateKeys) return "the job's state has 1000 keys already, more are not kept";
  if (total > kMaxStateBytes) return "the job's state would be larger than 16 MiB";
  return "";
}

void JobState::set(std::string_view key, std::string_view value) {
  check(key, value);
  const std::lock_guard lock(mutex_);
  if (!sizes_) load_sizes();
  // The rows may have been removed by someone else since the sizes were read: look again before
  // refusing.
  if (!refusal(key, value.size()).empty()) load_sizes();
  if (const std::string why = refusal(key, value.size()); !why.empty())
    throw Error(Code::invalid, why);
  store_.row_put(space_, key, value);
  sizes_->insert_or_assign(std::string(key), key.size() + value.size());
}

std::vector<std::string> JobState::keys() {
  const std::lock_guard lock(mutex_);
  if (!sizes_) load_sizes();
  std::vector<std::string> keys;
  keys.reserve(sizes_->size());
  for (const auto& [key, size] : *sizes_) keys.push_back(key);
  return keys;
}

json::Value JobState::all() const {
  json::Value whole = json::Value::object();
  // members() and not set(): the keys are unique already.
  for (auto& [key, value] : store_.row_list(space_))
    whole.members().push_back({key, std::move(value)});
  return whole;
}

}  // namespace umpteenth::runs
