// POST …/NAME/rollback?to=REVISION: declares an object again as it was. A new change, so that
// nothing of the history is lost; one that was deleted is created again.
#pragma once

#include "server/call.h"

namespace umpteenth::server {

http::Response roll_back(Env& env, Call& call);

}  // namespace umpteenth::server
