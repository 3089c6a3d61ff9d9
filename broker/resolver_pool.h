// Looks names up for the egress proxy: a fixed number of threads, of which one run never has all.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/net/address.h"

namespace umpteenth::broker {

struct Resolved {
  std::vector<net::Address> addresses;  // IPv4 only
  std::vector<net::Class> classes;      // of each
  std::string error;                    // not "": there is no answer
};

class ResolverPool {
 public:
  // The IPv4 addresses of a name. Blocks; Error where there are none.
  using Resolve = std::function<std::vector<net::Address>(const std::string& host)>;
  using Classify = std::function<net::Class(const net::Address& address)>;
  struct Options {
    size_t threads = 8;
    size_t threads_per_run = 3;
    Resolve resolve;  // may still be running when the pool is gone
    Classify classify;
  };

  explicit ResolverPool(Options options);
  // Waits for no look-up: its answer then goes nowhere.
  ~ResolverPool();
  // done is called on a thread of the pool, unless the pool ends before. The caller bounds how many
  // a run has waiting.
  void submit(std::string run_uid, std::string host, std::function<void(Resolved)> done);

 private:
  struct State;
  static void work(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;
};

std::vector<net::Address> resolve_ipv4(const std::string& host);

}  // namespace umpteenth::broker
