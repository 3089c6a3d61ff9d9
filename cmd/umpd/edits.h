// What an edit by plain git must pass: the same admission as every other write.
#pragma once

#include "apis/seal.h"
#include "base/clock.h"
#include "server/ports.h"
#include "store/store.h"

namespace umpteenth::umpd {

struct EditParts {
  const apis::Sealer& sealer;
  Clock& clock;
  server::Finalizers finalizers;
};

// The file's object, completed. live: what is in force, null for a new one; its uid, its times and
// its generation stay. Error(invalid) and others say what is wrong with the file.
json::Value admit_edit(const EditParts& parts, const store::Key& key, json::Value file,
                       const store::RecordPtr& live);

}  // namespace umpteenth::umpd
