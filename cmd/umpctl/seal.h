// Secrets that may lie in a repository: values sealed so that one instance alone can open them.
#pragma once

#include "base/json.h"

namespace umpteenth::umpctl {

// A Secret whose stringData went into sealedData, bound to its workspace, name and entry; any other
// object as it is. key: the answer of /umpteenth/v1alpha1/sealing-key. Error(bad_request) for
// values that are no strings and for what is no key.
json::Value sealed(json::Value object, const json::Value& key);

}  // namespace umpteenth::umpctl
