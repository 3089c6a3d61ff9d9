// How large a timeline event may be (docs/timeline.md). Pure but for the spill function.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace umpteenth::runs {

inline constexpr size_t kMaxPayloadBytes = 16U << 10;
inline constexpr size_t kMaxBrokerCalls = 1000;
// What may have changed something stays on the timeline beyond that, to this end.
inline constexpr size_t kMaxBrokerCallsInAll = 5000;

// Members by name: `arguments` 4000 characters, `reasoning` 3000+1000, every other text 6000+6000.
// Bytes that are not UTF-8 are replaced, at any depth.
json::Value clip_event(json::Value data);
// A broker call's: every text 500 characters, `result` 2000+1000.
json::Value clip_call(json::Value data);

// Data of at most kMaxPayloadBytes as it is. Larger: the whole goes to `spill`, which answers with
// its digest; what remains are the small members and "spilled": {"digest", "bytes"}.
json::Value spill_large(json::Value data,
                        const std::function<std::string(std::string_view bytes)>& spill);

}  // namespace umpteenth::runs
