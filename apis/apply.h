// Server-side apply, as a pure function: merges what a manager applies into the live object by
// field ownership. Lists are atomic. The result goes through prepare_create or prepare_update with
// WriteOptions::managed_fields_made set.
#pragma once

#include <string>

#include "apis/kind.h"

namespace umpteenth::apis {

struct ApplyOptions {
  std::string manager;  // the fieldManager parameter, required
  bool force = false;
  Time now;
};

struct Applied {
  json::Value object;    // merged, with managedFields
  bool created = false;  // there was no live object
};

// live: null where the object does not exist. Error(invalid) without a manager, Error(bad_request)
// where `applied` brings managedFields, Error(conflict) naming each field that another manager owns
// with another value (not with force; not where manager is kubectl and its own last-applied
// annotation explains the live value, so that client-side apply migrates).
Applied apply(const Kind& kind, const json::Value* live, const json::Value& applied,
              const ApplyOptions& options);

}  // namespace umpteenth::apis
