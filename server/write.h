// create, replace and patch, of objects and of their status.
#pragma once

#include <functional>
#include <string>

#include "server/admission.h"

namespace umpteenth::server {

http::Response create_object(Env& env, Call& call);
http::Response replace_object(Env& env, Call& call);
http::Response patch_object(Env& env, Call& call);

// What those are made of. message: of the commit, "" = says which object was created or updated.
http::Response create(Env& env, Call& call, const WriteQuery& query, const json::Value& object,
                      const std::string& message = "");
using Mutate = std::function<json::Value(const json::Value& old)>;
// Reads, mutates, commits; again where another write came between and the client named no revision.
http::Response update(Env& env, Call& call, const WriteQuery& query, const Mutate& mutate,
                      const std::string& message = "");

}  // namespace umpteenth::server
