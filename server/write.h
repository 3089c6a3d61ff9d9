// create, replace and patch, of objects and of their status.
#pragma once

#include "server/call.h"

namespace umpteenth::server {

http::Response create_object(Env& env, Call& call);
http::Response replace_object(Env& env, Call& call);
http::Response patch_object(Env& env, Call& call);

}  // namespace umpteenth::server
