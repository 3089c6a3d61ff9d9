// metadata: its schema, and the rules of names, labels, annotations, finalizers and owners.
#pragma once

#include <string>
#include <vector>

#include "apis/kind.h"

namespace umpteenth::apis {

inline constexpr size_t kMaxAnnotationBytes = 256U << 10;
inline constexpr size_t kMaxFinalizers = 100;
inline constexpr size_t kMaxOwners = 100;

// OpenAPI v3 of metav1.ObjectMeta.
const json::Value& metadata_schema();

// Everything but immutability. `object` has metadata of the right shape (metadata_schema).
void check_metadata(const Kind& kind, const json::Value& object, std::vector<Cause>& causes);

// What an update may not do to metadata.
void check_metadata_update(const json::Value& object, const json::Value& old,
                           std::vector<Cause>& causes);

}  // namespace umpteenth::apis
