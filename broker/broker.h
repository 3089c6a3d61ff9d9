// The broker API that `ump` calls (docs/broker.md). Faces hostile code: every limit is here or in
// runs/. One Broker serves all runs; listeners hand it requests with the address they came in on.
#pragma once

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
};

class Broker {
 public:
  Broker(runs::Registry& registry, Options options);
  http::Site site();  // admit, handle, error_response for an http::Server with broker_limits()

 private:
  http::Response handle(const http::Request& request);
  runs::Registry& registry_;
  Options options_;
};

}  // namespace umpteenth::broker
