// Keeps the first and the last bytes of an output of any length.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace umpteenth::controllers::run {

class Capture {
 public:
  Capture(size_t head, size_t tail) : max_head_(head), max_tail_(tail) {}
  void add(std::string_view bytes);
  uint64_t total() const { return total_; }
  std::string text() const;  // head, a line that says how much is missing, tail

 private:
  size_t max_head_, max_tail_;
  std::string head_, tail_;
  uint64_t total_ = 0;
};

}  // namespace umpteenth::controllers::run
