#include "controllers/run/capture.h"

#include <algorithm>

namespace umpteenth::controllers::run {

void Capture::add(std::string_view bytes) {
  total_ += bytes.size();
  size_t fits = std::min(bytes.size(), max_head_ - head_.size());
  head_.append(bytes.substr(0, fits));
  bytes.remove_prefix(fits);
  if (bytes.size() >= max_tail_) {
    tail_.assign(bytes.substr(bytes.size() - max_tail_));
    return;
  }
  tail_.append(bytes);
  // Cut in large steps: a command that prints forever must not move the tail for each chunk.
  if (tail_.size() > 2 * max_tail_ + 4096) tail_.erase(0, tail_.size() - max_tail_);
}

std::string Capture::text() const {
  std::string_view tail = tail_;
  if (head_.size() + tail.size() == total_ && tail.size() <= max_tail_) return head_ + tail_;
  if (tail.size() > max_tail_) tail.remove_prefix(tail.size() - max_tail_);
  uint64_t missing = total_ - head_.size() - tail.size();
  return head_ + "\n… " + std::to_string(missing) + " bytes left out …\n" + std::string(tail);
}

}  // namespace umpteenth::controllers::run
