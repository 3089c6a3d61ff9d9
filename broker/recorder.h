// Writes to runs' timelines on a thread of its own, for callers that must not wait for the store.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/json.h"
#include "runs/live_run.h"

namespace umpteenth::broker {

class Recorder {
 public:
  Recorder();
  ~Recorder();  // writes what waits
  // As LiveRun::record_call for a call that changes nothing. Dropped, with a warning, where
  // thousands wait already.
  void record(std::shared_ptr<runs::LiveRun> run, std::string name, json::Value data);

 private:
  struct Entry {
    std::shared_ptr<runs::LiveRun> run;
    std::string name;
    json::Value data;
  };
  void work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Entry> waiting_;
  std::jthread thread_;
};

}  // namespace umpteenth::broker
