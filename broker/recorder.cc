#include "broker/recorder.h"

#include "base/error.h"
#include "base/log.h"

namespace umpteenth::broker {
namespace {

constexpr size_t kMaxWaiting = 4096;

}  // namespace

Recorder::Recorder() : thread_([this](const std::stop_token& stop) { work(stop); }) {}
Recorder::~Recorder() = default;

void Recorder::record(std::shared_ptr<runs::LiveRun> run, std::string name, json::Value data) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMaxWaiting) {
      log::warn("a timeline event was dropped", {{"run", run->info().name}, {"name", name}});
      return;
    }
    waiting_.push_back({std::move(run), std::move(name), std::move(data)});
  }
  changed_.notify_one();
}

void Recorder::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
    Entry entry = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      entry.run->record_call(entry.name, std::move(entry.data), false);
    } catch (const Error& e) {  // a full disk must not end the thread
      log::warn("timeline event not written",
                {{"run", entry.run->info().name}, {"error", log::clip(e.message())}});
    }
    lock.lock();
  }
}

}  // namespace umpteenth::broker
