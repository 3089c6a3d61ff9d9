// Starting runs: a person's POST of a Run and POST …/jobs/NAME/run go the way of every trigger; and
// asking for their end.
#pragma once

#include "server/admission.h"

namespace umpteenth::server {

http::Response create_run(Env& env, Call& call, const WriteQuery& query, const json::Value& run);
http::Response run_job(Env& env, Call& call);  // {input, instructions}

// An update that asks for a run's end keeps who asked, whatever the client wrote there.
void note_canceller(const Call& call, const json::Value& old, json::Value& run);

}  // namespace umpteenth::server
