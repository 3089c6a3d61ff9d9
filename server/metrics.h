// Counters of the API, and their Prometheus text. Thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "store/store.h"

namespace umpteenth::server {

class Metrics {
 public:
  void count(std::string_view method, int status, std::chrono::microseconds took);
  std::string text(const store::Store& store) const;

 private:
  struct Taken {
    uint64_t count = 0;
    double seconds = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;
  std::map<std::string, Taken> taken_;
};

}  // namespace umpteenth::server
