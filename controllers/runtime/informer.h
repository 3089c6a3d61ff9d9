// Everything of one kind, handed to a sink: first what is there, then each change, in order. Keeps
// no copy: the store's own memory is the cache.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "store/store.h"

namespace umpteenth::controllers {

class Informer {
 public:
  // The sink is called on start()'s and resync()'s thread, and on the store's thread. It must be
  // quick, must not commit and must not throw.
  using Sink = std::function<void(const store::Event&)>;

  Informer(store::Store& store, std::string kind, Sink sink);
  void start();   // lists, then watches from the list's revision; lists again when that has expired
  void resync();  // hands everything over again
  void stop();    // no call of the sink afterwards

 private:
  uint64_t list();

  store::Store& store_;
  std::string kind_;
  Sink sink_;
  std::mutex mutex_;
  std::unique_ptr<store::Subscription> subscription_;
};

}  // namespace umpteenth::controllers
