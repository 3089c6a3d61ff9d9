// Starting runs: a person's POST of a Run and POST …/jobs/NAME/run go the way of every trigger.
#pragma once

#include "server/admission.h"

namespace umpteenth::server {

http::Response create_run(Env& env, Call& call, const WriteQuery& query, const json::Value& run);
http::Response run_job(Env& env, Call& call);  // {input, instructions}

}  // namespace umpteenth::server
