// delete and deletecollection.
#pragma once

#include "server/call.h"

namespace umpteenth::server {

http::Response delete_object(Env& env, Call& call);
http::Response delete_collection(Env& env, Call& call);

}  // namespace umpteenth::server
