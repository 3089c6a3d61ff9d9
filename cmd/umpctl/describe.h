// An object as text for people: fields aligned, conditions and events as tables.
#pragma once

#include <string>

#include "apis/kind.h"
#include "base/json.h"

namespace umpteenth::umpctl {

// events: an EventList. Fields are titled by the kind's schema; the keys of what is no schema's
// (labels, outputs, sealed values) stay as they are.
std::string describe_text(const apis::Kind& kind, const json::Value& object,
                          const json::Value& events);

// timeoutSeconds → Timeout Seconds, memoryMiB → Memory MiB, costUSD → Cost USD, apiKey → API Key.
std::string field_title(const std::string& name);

}  // namespace umpteenth::umpctl
