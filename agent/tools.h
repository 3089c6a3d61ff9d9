// The tools a model is offered, and how one call is carried out.
#pragma once

#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "models/model_client.h"
#include "runs/live_run.h"
#include "runs/sandbox_io.h"

namespace umpteenth::agent {

struct ToolResult {
  std::string text;
  bool is_error = false;
};

struct Finish {
  bool success = false;
  std::string summary;
};

// What the tools of one run share. Only tools that are not read-only write to it: those run one at
// a time.
struct Workbench {
  runs::LiveRun& run;
  runs::SandboxIO& sandbox;
  Clock& clock;
  std::vector<std::string> remembered;
  std::optional<Finish> finished;
  std::set<std::string> log_names;  // of /ump/logs, taken
};

struct ToolSpec {
  models::Tool tool;
  bool read_only = false;
  // arguments fit the schema. Error(not_found|too_large|invalid|…) becomes an error result; that
  // the sandbox is gone or the engine unreachable ends the run.
  ToolResult (*run)(const models::ToolCall& call, Workbench& bench, std::stop_token stop);
};

// Sorted by name, always the same: the prompt's cache depends on it.
const std::vector<ToolSpec>& tools();
std::vector<models::Tool> offered_tools();

ToolSpec bash_tool();
ToolSpec edit_file_tool();
ToolSpec finish_tool();
ToolSpec read_file_tool();
ToolSpec remember_tool();
ToolSpec state_get_tool();
ToolSpec state_set_tool();
ToolSpec write_file_tool();

// {"type": "object", …} with these properties; all other arguments are refused.
json::Value arguments_schema(json::Value properties, const std::vector<std::string>& required);

// True for what SandboxIO throws when there is no sandbox to work in any more.
bool sandbox_lost(const Error& error);

}  // namespace umpteenth::agent
