// Writes a run's status, forward only, however many others write to the Run meanwhile.
#pragma once

#include <functional>
#include <string_view>

#include "apis/run.h"
#include "controllers/runtime/run_index.h"
#include "store/store.h"

namespace umpteenth::controllers::run {

inline constexpr char kRunActor[] = "system:controller:run";

// change sees the status as it is and makes it what it is to be. The record as written, or null
// when the Run does not exist any more or is past that: no phase is ever gone back to.
store::RecordPtr advance(store::Store& store, RunIndex& index, const store::Key& key,
                         apis::Phase to, const std::function<void(apis::RunStatus&)>& change);

// `Cancelled (by admin)`: the message with who asked for the run's end, where that is known.
std::string with_canceller(const std::string& message, const store::RecordPtr& run);

}  // namespace umpteenth::controllers::run
