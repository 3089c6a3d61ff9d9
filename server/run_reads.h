// What a run left: its timeline (as JSON lines or as text), and its artifacts.
#pragma once

#include "server/call.h"

namespace umpteenth::server {

// GET …/runs/NAME/timeline[?after=SEQ&limit=N&watch=1], one JSON object a line, each with "seq".
http::Response run_timeline(Env& env, Call& call);
// GET …/runs/NAME/log[?follow=true&tailLines=N]: the same as text for people.
http::Response run_log(Env& env, Call& call);
// GET …/runs/NAME/artifacts and …/artifacts/PATH.
http::Response run_artifacts(Env& env, Call& call);

// One timeline event as a line of text, without its line end.
std::string log_line(const json::Value& event);

}  // namespace umpteenth::server
