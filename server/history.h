// What Kubernetes has not: the history of an object kept in git, what the controllers would do, and
// what they have put on an engine's host.
#pragma once

#include "server/call.h"

namespace umpteenth::server {

// Error(bad_request) for kinds that are not kept in git.
void require_history(const Call& call);

// GET …/KIND/NAME/history[?limit=N]: {"items": [{revision, commit, time, actor, verb, message}]},
// newest first; also of an object that was deleted. GET …/KIND/NAME?revision=REV is in read.h.
http::Response object_history(Env& env, Call& call);
// GET …/KIND/NAME/plan.
http::Response object_plan(Env& env, Call& call);
// DELETE …/sandboxengines/NAME/firewall: {"removed": [lines]}.
http::Response remove_firewall(Env& env, Call& call);

}  // namespace umpteenth::server
