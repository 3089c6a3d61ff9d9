// Runs controllers: informers fill a queue a controller, N workers empty it. One item that throws
// or takes too long never stops the loop.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/store.h"

namespace umpteenth::controllers {

// What a reconcile found. Throwing is the third way: tried again with exponential backoff; a
// conflict (somebody wrote meanwhile) quietly so.
struct Outcome {
  enum class Kind { done, look_again, terminal } kind = Kind::done;
  Duration after{};
  std::string reason;  // terminal: what must change before this can work

  static Outcome done() { return {}; }
  static Outcome look_again(Duration after) { return {Kind::look_again, after, ""}; }
  static Outcome terminal(std::string reason) { return {Kind::terminal, {}, std::move(reason)}; }
};

struct Controller {
  std::string name;
  // stop: the deadline of this reconcile has passed or the program ends.
  std::function<Outcome(const store::Key& key, std::stop_token stop)> reconcile;
  struct Source {
    std::string kind;
    // Which keys of this controller an event concerns; on the store's thread: no waiting.
    std::function<std::vector<store::Key>(const store::Event&)> keys;
  };
  std::vector<Source> sources;
  Duration settle{0};  // what an event asks for begins this much later: a burst is one reconcile
  int workers = 1;
  Duration deadline{60'000};
  Duration resync{600'000};
};

class Manager {
 public:
  Manager(store::Store& store, Clock& clock);
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  void add(Controller controller);  // before start()
  void start();
  // Something outside the store happened that concerns this key.
  void poke(const std::string& controller, const store::Key& key);
  // True when every worker ended in time. False: the process must end without destroying what the
  // controllers use (std::_Exit), a reconcile still hangs in it.
  bool stop(Duration within);

  struct Stats {
    uint64_t reconciles = 0, errors = 0, conflicts = 0, overdue = 0;
  };
  Stats stats(const std::string& controller) const;

 private:
  struct Running;
  Running& find(const std::string& name) const;
  void schedule_resync(const std::shared_ptr<Running>& running);

  struct Core;
  std::shared_ptr<Core> core_;  // shared with the workers, which may outlive a stop() in vain
};

// The key of the event's own object.
std::vector<store::Key> own_key(const store::Event& event);

}  // namespace umpteenth::controllers
