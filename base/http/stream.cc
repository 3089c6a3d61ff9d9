#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "base/http/message.h"

namespace umpteenth::http {

struct Stream::State {
  explicit State(size_t max) : max_queued(max) {}

  std::mutex mutex;
  std::condition_variable room;
  const size_t max_queued;
  size_t queued = 0;
  std::vector<std::string> chunks;
  bool closed = false, aborted = false, overflowed = false, gone = false;
  bool notified = false;  // since the last drain
  std::function<void()> readable;
  std::vector<std::function<void()>> at_end;

  bool accepts() const { return !closed && !aborted && !gone; }

  void notify() {
    if (notified || !readable) return;
    notified = true;
    readable();
  }

  void add(std::string bytes) {
    if (bytes.empty()) return;
    queued += bytes.size();
    chunks.push_back(std::move(bytes));
    notify();
  }

  void drop() {
    chunks.clear();
    queued = 0;
    room.notify_all();
  }
};

Stream::Stream(size_t max_queued_bytes) : state_(std::make_shared<State>(max_queued_bytes)) {}

bool Stream::push(std::string bytes) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->accepts()) return false;
  if (state_->queued + bytes.size() > state_->max_queued) {
    state_->overflowed = state_->aborted = true;
    state_->drop();
    state_->notify();
    return false;
  }
  state_->add(std::move(bytes));
  return true;
}

bool Stream::push_wait(std::string bytes) {
  std::unique_lock lock(state_->mutex);
  // More than the bound at once goes in alone: it could never fit.
  state_->room.wait(lock, [&] {
    return !state_->accepts() || state_->queued == 0 ||
           state_->queued + bytes.size() <= state_->max_queued;
  });
  if (!state_->accepts()) return false;
  state_->add(std::move(bytes));
  return true;
}

void Stream::close() {
  const std::lock_guard lock(state_->mutex);
  state_->closed = true;
  state_->room.notify_all();
  state_->notify();
}

void Stream::abort() {
  const std::lock_guard lock(state_->mutex);
  state_->aborted = true;
  state_->drop();
  state_->notify();
}

bool Stream::closed() const {
  const std::lock_guard lock(state_->mutex);
  return !state_->accepts();
}

bool Stream::overflowed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->overflowed;
}

void Stream::on_end(std::function<void()> f) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->gone) {
      state_->at_end.push_back(std::move(f));
      return;
    }
  }
  f();
}

Stream::Drain Stream::drain() {
  const std::lock_guard lock(state_->mutex);
  state_->notified = false;
  Drain drain;
  drain.chunks.swap(state_->chunks);
  state_->drop();
  drain.ended = state_->closed;
  drain.aborted = state_->aborted;
  return drain;
}

void Stream::on_readable(std::function<void()> f) {
  const std::lock_guard lock(state_->mutex);
  state_->readable = std::move(f);
  state_->notified = false;
  if (state_->readable && (!state_->chunks.empty() || state_->closed || state_->aborted))
    state_->notify();
}

void Stream::peer_gone() {
  std::vector<std::function<void()>> at_end;
  {
    const std::lock_guard lock(state_->mutex);
    state_->gone = true;
    state_->drop();
    state_->readable = nullptr;
    at_end.swap(state_->at_end);
  }
  for (const auto& f : at_end) f();
}

}  // namespace umpteenth::http
