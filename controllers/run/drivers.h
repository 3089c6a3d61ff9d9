// The drivers at work, a thread each; as many as the admission lets in.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "controllers/run/driver.h"

namespace umpteenth::controllers::run {

class Drivers {
 public:
  // ended: called on the driver's thread once its run has left driven().
  Drivers(Services& services, std::function<void(const store::Key&)> ended)
      : services_(services), ended_(std::move(ended)) {}
  ~Drivers() { stop_all(Duration(10'000)); }
  Drivers(const Drivers&) = delete;
  Drivers& operator=(const Drivers&) = delete;

  // Before the claim is written: from here on the run counts as driven. False when it is already,
  // or when umpd is stopping.
  bool reserve(const std::string& uid);
  void release(const std::string& uid);  // the claim came to nothing
  void start(const store::Record& claimed);

  bool driving(const std::string& uid) const;
  std::set<std::string> driven() const;
  void stop(const std::string& uid, Stop why);
  // Fails all as interrupted. True when all sandboxes are removed within the time; else the process
  // must end without destroying the services.
  bool stop_all(Duration within);

 private:
  struct Entry {
    std::shared_ptr<Driver> driver;  // null while reserved
    std::thread thread;
  };
  void reap();

  Services& services_;
  std::function<void(const store::Key&)> ended_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> entries_;
  std::vector<std::thread> finished_;
  bool stopping_ = false;
};

}  // namespace umpteenth::controllers::run
