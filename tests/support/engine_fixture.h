// The real engine of a test program: the one that UMPTEENTH_ENGINE names (unix://…, as ./dev test
// sets it, so that all suites share one), else one of its own by engine.sh, ended with the program.
#pragma once

#include <filesystem>
#include <string>

namespace umpteenth::support {

struct TestEngine {
  std::string endpoint;       // unix://…
  std::filesystem::path dir;  // engine.sh's folder; empty for an engine from elsewhere
  std::string skip;           // why there is none here: root or dockerd is missing
};

// Started at the first call. An engine that should start and does not is an Error, not a skip.
const TestEngine& test_engine();

}  // namespace umpteenth::support
