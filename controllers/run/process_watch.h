// Tells within milliseconds that a process has ended, by its pidfd. One thread, made at the first
// use, asleep meanwhile.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace umpteenth::controllers::run {

class ProcessWatch {
 public:
  ProcessWatch();
  ~ProcessWatch() { stop(); }
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  struct Process {
    std::shared_ptr<void> owner;  // keeps the descriptor open
    int pidfd;
  };
  // ended: called once, on the watch's thread; also where it had ended already.
  void add(const std::string& key, Process process, std::function<void()> ended);
  void remove(const std::string& key);
  void stop();  // nothing is told any more, nor taken on

 private:
  struct Watched {
    Process process;
    std::function<void()> ended;
  };
  void run();
  std::vector<std::string> wait_for_any(const std::map<std::string, Process>& of);

  Fd wake_;
  std::mutex mutex_;
  std::map<std::string, Watched> watched_;
  std::thread thread_;
  bool stopped_ = false;
};

}  // namespace umpteenth::controllers::run
