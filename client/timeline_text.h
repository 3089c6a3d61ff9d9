// A timeline event as a line for people.
#pragma once

#include <string>

#include "base/json.h"

namespace umpteenth::client {

// "12:03:04  tool.call     bash: ls -l"; "" for events a person need not see.
std::string timeline_line(const json::Value& event);

}  // namespace umpteenth::client
