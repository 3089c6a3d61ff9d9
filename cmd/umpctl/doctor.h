// umpctl doctor: the hardening checklist as people read it.
#pragma once

#include <string>

#include "base/json.h"
#include "cmd/umpctl/command.h"

namespace umpteenth::umpctl {

void add_doctor_command(std::vector<Command>& table);

// report: the answer of /umpteenth/v1alpha1/doctor. An item a paragraph: its state and title, what
// was found, what to do; then the counts.
std::string checklist_text(const json::Value& report);
bool all_met(const json::Value& report);  // none is unmet

}  // namespace umpteenth::umpctl
