#include "cmd/umpctl/doctor.h"

#include <iostream>
#include <map>

#include "apis/yaml.h"
#include "base/error.h"
#include "cmd/umpctl/command.h"
#include "cmd/umpctl/output.h"

namespace umpteenth::umpctl {
namespace {

constexpr char kMet[] = "met", kUnmet[] = "unmet", kNotKnown[] = "not known";

int doctor(Invocation& line) {
  if (!line.arguments.empty())
    throw Error(Code::bad_request, "doctor takes no argument, found " + line.arguments[0]);
  using Form = Output::Form;
  const Output output = parse_output(line.get("output"));
  if (output.form != Form::table && output.form != Form::json && output.form != Form::yaml)
    throw Error(Code::bad_request,
                "--output is \"" + line.get("output") + "\", for doctor it must be json or yaml");
  const json::Value report =
      json::parse(line.client().send("GET", "/umpteenth/v1alpha1/doctor").body);
  if (output.form == Form::json)
    std::cout << report.dump_pretty() << "\n";
  else if (output.form == Form::yaml)
    std::cout << apis::to_yaml(report);
  else
    std::cout << checklist_text(report);
  return all_met(report) ? kOk : kError;
}

}  // namespace

std::string checklist_text(const json::Value& report) {
  std::string text;
  std::map<std::string, int> counts;
  for (const json::Value& item : report.get("items").items()) {
    const std::string state = item.get_string("state");
    ++counts[state];
    std::string head = state;
    head.resize(11, ' ');
    const std::string indent(head.size(), ' ');
    text += head + item.get_string("title") + "\n";
    for (const char* part : {"found", "todo"}) {
      const std::string words = item.get_string(part);
      if (words.empty()) continue;
      text += indent + (std::string_view(part) == "todo" ? "-> " : "") + words + "\n";
    }
  }
  return text + std::to_string(counts[kMet]) + " met, " + std::to_string(counts[kUnmet]) +
         " unmet, " + std::to_string(counts[kNotKnown]) + " not known\n";
}

bool all_met(const json::Value& report) {
  for (const json::Value& item : report.get("items").items())
    if (item.get_string("state") == kUnmet) return false;
  return true;
}

void add_doctor_command(std::vector<Command>& table) {
  table.push_back(
      {"doctor",
       "",
       "Go through the hardening checklist",
       "Each item is met, unmet or not known (what umpd cannot see), with what was found "
       "and what to do.\nExit code: 0 none is unmet, 1 some are. It takes the admin's "
       "token.",
       {{"output", 'o', "FORM", "json or yaml"}},
       doctor});
}

}  // namespace umpteenth::umpctl
