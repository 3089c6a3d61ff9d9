// What the model is told at the start. The system blocks hold nothing that changes from run to run,
// so that a provider's prompt cache serves them.
#pragma once

#include <string>
#include <vector>

#include "agent/agent.h"

namespace umpteenth::agent {

std::vector<std::string> system_blocks(const Params& params);
std::string first_message(const Params& params, Time now);

inline constexpr char kReminder[] =
    "You answered without calling a tool. Go on with the work, or call finish if it is done or "
    "cannot be done.";

}  // namespace umpteenth::agent
