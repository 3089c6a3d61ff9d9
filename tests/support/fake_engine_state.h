// FakeEngine's innards, shared by its .cc files.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "tests/support/fake_engine.h"

namespace umpteenth::support {

struct FakeEngine::FakeContainer {
  engine::ContainerSpec spec;
  engine::Container seen;  // what inspect answers
  FakeFiles files;
  std::map<std::string, std::string> attached;  // network id → address
};

struct FakeEngine::FakeImage {
  engine::Image seen;
  FakeFiles files;
};

struct FakeEngine::Subscriber {
  engine::Labels labels;
  std::deque<engine::EngineEvent> queue;
  bool broken = false;
};

bool labels_match(const engine::Labels& have, const engine::Labels& want);

}  // namespace umpteenth::support
