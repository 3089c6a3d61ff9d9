// plan, engine: what the controllers would do, and what is on an engine's host.
#include <iostream>

#include "apis/object.h"
#include "apis/sandbox_engine.h"
#include "base/error.h"
#include "cmd/umpctl/command.h"
#include "cmd/umpctl/output.h"
#include "cmd/umpctl/resources.h"

namespace umpteenth::umpctl {
namespace {

std::string engine_path(const std::string& name, const std::string& below = "") {
  return client::Client::path_of(apis::sandbox_engine_kind(), "", name, below);
}

void print_actions(const json::Value& plan) {
  for (const json::Value& action : plan.get("actions").items())
    std::cout << "  " << action.as_string() << "\n";
  if (plan.get("actions").size() == 0) std::cout << "  nothing\n";
}

int plan(Invocation& line) {
  const Target t = one_target(line);
  const json::Value shown = json::parse(
      line.client().send("GET", client::Client::path_of(*t.kind, t.ns, t.name, "plan")).body);
  if (line.get("output") == "json") {
    std::cout << shown.dump_pretty() << "\n";
    return kOk;
  }
  std::cout << object_name(*t.kind, t.name) << ": to be done\n";
  print_actions(shown);
  return kOk;
}

int engine_status(Invocation& line) {
  const std::string name = line.arguments.empty() ? "default" : line.arguments[0];
  const json::Value engine = line.client().get(apis::sandbox_engine_kind(), "", name);
  const json::Value shown = json::parse(line.client().send("GET", engine_path(name, "plan")).body);
  const json::Value& status = engine.get("status");
  const json::Value& firewall = status.get("egressFirewall");
  const auto say = [](const char* what, const std::string& text) {
    if (!text.empty())
      std::cout << what << std::string(18 - std::string(what).size(), ' ') << text << "\n";
  };
  const json::Value& version = status.get("version");
  say("Engine:", version.get_string("name") + " " + version.get_string("engine"));
  say("Attachment:", status.get_string("attachment"));
  say("Egress filter:", engine.get("spec").get_string("egressFilter"));
  say("Firewall:", firewall.get_string("state"));
  say("Reason:", firewall.get_string("reason"));
  say("Backend:", firewall.get_string("backend"));
  say("Watch:", firewall.get_string("watch"));
  say("Last checked:", firewall.get_string("lastChecked"));
  say("Repairs:", std::to_string(firewall.get_int("repairs")));
  say("Last repaired:", firewall.get_string("lastRepaired"));
  say("Last repair:", firewall.get_string("lastRepair"));
  std::cout << "To be done:\n";
  print_actions(shown);
  if (const std::string rules = shown.get_string("rules"); !rules.empty())
    std::cout << "Rules:\n" << rules;
  return kOk;
}

int engine_firewall(Invocation& line) {
  if (line.arguments.empty() || line.arguments.size() > 2 || line.arguments[0] != "remove")
    throw Error(Code::bad_request, "umpctl engine firewall remove [ENGINE]");
  const std::string name = line.arguments.size() > 1 ? line.arguments[1] : "default";
  const json::Value removed =
      json::parse(line.client().send("DELETE", engine_path(name, "firewall")).body);
  for (const json::Value& text : removed.get("removed").items())
    std::cout << text.as_string() << "\n";
  if (removed.get("removed").size() == 0) std::cerr << "nothing of ours was there\n";
  return kOk;
}

}  // namespace

void add_engine_commands(std::vector<Command>& table) {
  table.push_back({"plan",
                   "TYPE/NAME",
                   "Show what the controllers would do now",
                   "Of jobs, runs and sandboxengines.",
                   {{"output", 'o', "FORMAT", "json"}},
                   plan});
  table.push_back({"engine status",
                   "[ENGINE]",
                   "Show a sandbox engine, its host's firewall and the rules that are wanted there",
                   "",
                   {},
                   engine_status});
  table.push_back({"engine firewall",
                   "remove [ENGINE]",
                   "Take this installation's rules out of the engine's host",
                   "Needs egressFilter: off. Rules that other installations use stay.",
                   {},
                   engine_firewall});
}

}  // namespace umpteenth::umpctl
