#include "store/watch_hub.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/log.h"

namespace umpteenth::store {
namespace {

constexpr size_t kBurst = 256;  // events to one subscription before the next has its turn

struct Reader {
  std::string kind;
  uint64_t seen = 0;  // revision
  std::function<void(const Event&)> sink;
  bool closed = false;
  bool calling = false;
};

}  // namespace

struct WatchHub::State {
  explicit State(size_t history) : max(history) {}

  void run();
  bool serve(const std::shared_ptr<Reader>& reader, std::unique_lock<std::mutex>& lock);
  void trim();
  std::deque<Event>::const_iterator after(uint64_t revision) const {
    return std::upper_bound(events.begin(), events.end(), revision,
                            [](uint64_t r, const Event& e) { return r < e.record->revision; });
  }

  const size_t max;
  std::mutex mutex;
  std::condition_variable changed;  // events, readers, progress, stop
  std::deque<Event> events;
  uint64_t oldest = 0;  // the newest revision whose event is gone
  std::vector<std::shared_ptr<Reader>> readers;
  bool stopping = false;
  std::thread thread;
};

namespace {

class HubSubscription : public Subscription {
 public:
  HubSubscription(std::function<void()> end) : end_(std::move(end)) {}
  ~HubSubscription() override { end_(); }

 private:
  std::function<void()> end_;
};

}  // namespace

void WatchHub::State::trim() {
  uint64_t slowest = UINT64_MAX;
  for (const auto& reader : readers) slowest = std::min(slowest, reader->seen);
  while (events.size() > max && events.front().record->revision <= slowest) {
    oldest = events.front().record->revision;
    events.pop_front();
  }
}

// True where the reader moved on.
bool WatchHub::State::serve(const std::shared_ptr<Reader>& reader,
                            std::unique_lock<std::mutex>& lock) {
  if (reader->closed) return false;
  auto it = after(reader->seen);
  if (it == events.end()) return false;
  std::vector<Event> batch;
  for (; it != events.end() && batch.size() < kBurst; ++it) {
    reader->seen = it->record->revision;
    if (reader->kind.empty() || it->record->key.kind == reader->kind) batch.push_back(*it);
  }
  reader->calling = true;
  lock.unlock();
  for (const Event& event : batch) {
    {
      std::lock_guard again(mutex);
      if (reader->closed) break;
    }
    // A sink that throws would end the only thread that serves all of them.
    try {
      reader->sink(event);
    } catch (const std::exception& e) {
      log::error("a watch's sink failed", {{"error", e.what()}});
    }
  }
  lock.lock();
  reader->calling = false;
  return true;
}

void WatchHub::State::run() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    bool moved = false;
    const auto turn = readers;
    for (const auto& reader : turn) moved |= serve(reader, lock);
    if (moved) {
      trim();
      changed.notify_all();
      continue;
    }
    const uint64_t newest = events.empty() ? oldest : events.back().record->revision;
    changed.wait(lock, [&] {
      return stopping || (!events.empty() && events.back().record->revision != newest) ||
             std::any_of(readers.begin(), readers.end(),
                         [&](const auto& reader) { return after(reader->seen) != events.end(); });
    });
  }
}

WatchHub::WatchHub(size_t history) : state_(std::make_shared<State>(history)) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

WatchHub::~WatchHub() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

void WatchHub::start_at(uint64_t revision) {
  std::lock_guard lock(state_->mutex);
  state_->oldest = std::max(state_->oldest, revision);
}

void WatchHub::publish(std::vector<Event> events) {
  std::unique_lock lock(state_->mutex);
  for (Event& event : events) state_->events.push_back(std::move(event));
  state_->trim();
  state_->changed.notify_all();
  state_->changed.wait(
      lock, [&] { return state_->stopping || state_->events.size() <= 2 * state_->max + kBurst; });
}

std::unique_ptr<Subscription> WatchHub::watch(std::string kind, uint64_t from, uint64_t current,
                                              std::function<void(const Event&)> sink) {
  auto reader = std::make_shared<Reader>();
  reader->kind = std::move(kind);
  reader->seen = from;
  reader->sink = std::move(sink);
  {
    std::lock_guard lock(state_->mutex);
    if (from > current) {
      const std::string text = "Too large resource version: " + std::to_string(from) +
                               ", current: " + std::to_string(current);
      throw Error(Code::timeout, text,
                  {{"", "Too large resource version", "ResourceVersionTooLarge"}})
          .retry_after(1);
    }
    if (from < state_->oldest)
      throw Error(Code::expired, "too old resource version: " + std::to_string(from) + " (" +
                                     std::to_string(state_->oldest) + ")");
    state_->readers.push_back(reader);
  }
  state_->changed.notify_all();
  return std::make_unique<HubSubscription>([state = state_, reader] {
    std::unique_lock lock(state->mutex);
    reader->closed = true;
    std::erase(state->readers, reader);
    state->trim();  // a publisher may have waited for this one
    state->changed.notify_all();
    // Inside its own sink it cannot wait for itself.
    if (std::this_thread::get_id() != state->thread.get_id())
      state->changed.wait(lock, [&] { return !reader->calling; });
  });
}

uint64_t WatchHub::oldest() const {
  std::lock_guard lock(state_->mutex);
  return state_->oldest;
}

}  // namespace umpteenth::store
