// The broker API that `ump` calls (docs/broker.md). Faces hostile code: every limit is here or in
// runs/. One Broker serves all runs; listeners hand it requests with the address they came in on.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/http/server.h"
#include "models/model_client.h"
#include "runs/registry.h"

namespace umpteenth::broker {

struct Options {
  // The model behind `utility` or `agent` for that run. Error(not_found) where none is configured.
  std::function<models::Model(const runs::LiveRun& run, const std::string& which)> model;
  std::chrono::milliseconds llm_timeout{300'000};
};

// broker_limits() with enough threads that no run's calls, eight at work and 64 waiting, keep
// another run's from being served.
http::Limits limits(int concurrent_runs);

class Broker {
 public:
  Broker(runs::Registry& registry, Options options);
  ~Broker();          // after the servers that use it
  http::Site site();  // admit, handle, error_response for an http::Server with limits()

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace umpteenth::broker
