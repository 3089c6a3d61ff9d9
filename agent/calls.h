// Carries out the tool calls of one answer.
#pragma once

#include <stop_token>
#include <vector>

#include "agent/tools.h"

namespace umpteenth::agent {

// Consecutive read-only calls run in parallel, all others one at a time; the results are in the
// order of the calls, each on the timeline. What a call does wrong becomes its result; throws only
// when the sandbox is lost. Calls after a successful finish, or after a stop, are not carried out.
std::vector<models::Part> carry_out(const std::vector<models::ToolCall>& calls, Workbench& bench,
                                    std::stop_token stop);

}  // namespace umpteenth::agent
