// The metadata machinery, pure: what a server does to an object on its way in. The clock and the
// uid maker are handed in. All throw Error(invalid|bad_request|conflict) with causes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apis/kind.h"

namespace umpteenth::apis {

enum class FieldValidation { strict, warn, ignore };

struct WriteOptions {
  FieldValidation field_validation = FieldValidation::warn;
  std::string field_manager;  // for managedFields
  Time now;
  bool managed_fields_made = false;       // by apply(): taken as they are
  std::function<std::string()> make_uid;  // null: a random UUID
  // Of controllers that are at work here: the object has them from its creation until it is being
  // deleted, so that no controller has to write to what a person declared.
  std::vector<std::string> finalizers;
};

struct Admitted {
  json::Value object;
  std::vector<std::string> warnings;
};

// Structure, unknown fields (by mode), defaults, schema, kind rules, metadata (name or
// generateName, labels, annotations ≤ 256 KiB, finalizers, ownerReferences), uid,
// creationTimestamp, generation 1. `status` of the input is dropped.
Admitted prepare_create(const Kind& kind, json::Value object, const WriteOptions& options);

// A full replacement of the spec and the metadata a client may change; status is kept from `old`.
// generation +1 where spec (or deletionTimestamp) changed. metadata.resourceVersion of the input,
// where present, must be old's: Error(conflict).
Admitted prepare_update(const Kind& kind, const json::Value& old, json::Value object,
                        const WriteOptions& options);

// Only `status` of the input counts.
Admitted prepare_status_update(const Kind& kind, const json::Value& old, json::Value object,
                               const WriteOptions& options);

// The schema of a whole object of that kind: apiVersion, kind, metadata, spec, status.
const json::Value& object_schema(const Kind& kind);

// Deletion: nullopt where the object goes at once (no finalizers), else the object with
// deletionTimestamp.
std::optional<json::Value> prepare_delete(const json::Value& old, Time now);

}  // namespace umpteenth::apis
