#include "runs/live_run.h"

namespace umpteenth::runs {

int64_t Budget::spent() const {
  const std::lock_guard lock(mutex_);
  return spent_;
}

int64_t Budget::reserved() const {
  const std::lock_guard lock(mutex_);
  return reserved_;
}

bool Budget::exhausted() const {
  const std::lock_guard lock(mutex_);
  return limit_ > 0 && spent_ >= limit_;
}

void Budget::charge(int64_t micro_usd, int64_t input_tokens, int64_t output_tokens) {
  const std::lock_guard lock(mutex_);
  spent_ += micro_usd;
  input_ += input_tokens;
  output_ += output_tokens;
}

bool Budget::reserve(int64_t micro_usd) {
  const std::lock_guard lock(mutex_);
  if (limit_ > 0) {
    if (spent_ >= limit_) return false;
    if (in_flight_ > 0 && spent_ + reserved_ + micro_usd > limit_) return false;
  }
  reserved_ += micro_usd;
  ++in_flight_;
  return true;
}

void Budget::settle(int64_t reserved, int64_t charged, int64_t input_tokens,
                    int64_t output_tokens) {
  const std::lock_guard lock(mutex_);
  reserved_ -= reserved;
  --in_flight_;
  spent_ += charged;
  input_ += input_tokens;
  output_ += output_tokens;
}

int64_t Budget::input_tokens() const {
  const std::lock_guard lock(mutex_);
  return input_;
}

int64_t Budget::output_tokens() const {
  const std::lock_guard lock(mutex_);
  return output_;
}

}  // namespace umpteenth::runs
