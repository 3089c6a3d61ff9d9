// history and rollback: git underneath.
#include <iostream>

#include "apis/object.h"
#include "base/error.h"
#include "cmd/umpctl/command.h"
#include "cmd/umpctl/output.h"
#include "cmd/umpctl/resources.h"

namespace umpteenth::umpctl {
namespace {

// 0 where it does not exist.
uint64_t revision_now(Invocation& line, const Target& t) {
  try {
    return apis::revision_of(line.client().get(*t.kind, t.ns, t.name));
  } catch (const Error& e) {
    if (e.code() != Code::not_found) throw;
    return 0;
  }
}

int history(Invocation& line) {
  const Target t = one_target(line);
  const std::string path = client::Client::path_of(*t.kind, t.ns, t.name, "history");
  const json::Value list =
      json::parse(line.client().send("GET", path, {{"limit", line.get("limit")}}).body);
  if (line.get("output") == "json") {
    std::cout << list.dump_pretty() << "\n";
    return kOk;
  }
  json::Value table = json::Value::object();
  for (const char* column : {"Revision", "Commit", "Time", "Actor", "Change"})
    table["columnDefinitions"].push_back(json::Value::object({{"name", column}, {"priority", 0}}));
  for (const json::Value& r : list.get("items").items()) {
    const json::Value& revision = r.get("revision");
    table["rows"].push_back(json::Value::object(
        {{"cells",
          json::Value::array({revision.is_string() ? revision.as_string() : revision.dump(),
                              r.get_string("commit").substr(0, 12), r.get_string("time"),
                              r.get_string("actor"), r.get_string("message")})}}));
  }
  TablePrinter({}).print(std::cout, table);
  return kOk;
}

int rollback(Invocation& line) {
  const Target t = one_target(line);
  if (!line.given("to"))
    throw Error(Code::bad_request, "--to REVISION is missing; umpctl history lists the revisions");
  const uint64_t before = revision_now(line, t);
  client::Params params = write_params(line, "umpctl-rollback");
  params.emplace_back("to", line.get("to"));
  const std::string path = client::Client::path_of(*t.kind, t.ns, t.name, "rollback");
  const json::Value made = json::parse(line.client().send("POST", path, params).body);
  const bool dry = is_dry_run(line);
  const bool unchanged = before != 0 && !dry && apis::revision_of(made) == before;
  std::cout << object_name(*t.kind, t.name)
            << (unchanged     ? " unchanged"
                : before == 0 ? " restored as it was at " + line.get("to")
                              : " rolled back to " + line.get("to"))
            << (dry ? " (server dry run)" : "") << "\n";
  return kOk;
}

}  // namespace

void add_history_commands(std::vector<Command>& table) {
  table.push_back({"history",
                   "TYPE NAME",
                   "List the commits that changed an object",
                   "",
                   {{"limit", 0, "N", "how many", "50"}, kOutputFlag},
                   history});
  table.push_back(
      {"rollback",
       "TYPE NAME --to REVISION",
       "Declare an object again as it was",
       "umpctl rollback job hello --to 42\n\nREVISION is a number or a commit of umpctl "
       "history. It is a new change: nothing is lost. What was deleted is created again.",
       {{"to", 0, "REVISION", "the revision or commit"}, kDryRunFlag},
       rollback});
}

}  // namespace umpteenth::umpctl
