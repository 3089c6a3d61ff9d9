// Writes that controllers make: always conditional on what was read.
#pragma once

#include <string>

#include "store/store.h"

namespace umpteenth::controllers {

// Replaces the status, skipped (nullptr) when it is equal already. Error(conflict) when somebody
// wrote since `record` was read.
store::RecordPtr write_status(store::Store& store, const store::Record& record, json::Value status,
                              const std::string& actor);
// Replaces the whole object under the same condition.
store::RecordPtr write_object(store::Store& store, const store::Record& record, json::Value object,
                              const std::string& actor, const std::string& message);

}  // namespace umpteenth::controllers
