// get and list.
#pragma once

#include "server/call.h"

namespace umpteenth::server {

http::Response get_object(Env& env, Call& call);  // ?revision= : as of that revision of its history
http::Response list_objects(Env& env, Call& call);

// The record of the path. Error(not_found).
store::RecordPtr find_record(Env& env, const Call& call);
// Error(timeout) for a resourceVersion that does not exist yet.
void refuse_future(uint64_t wanted, uint64_t current);

}  // namespace umpteenth::server
