// The few protobuf request bodies that kubectl ≥ 1.32 sends for built-in kinds: the "k8s\0"
// envelope around SelfSubject…Review, Namespace and DeleteOptions, turned into the JSON that other
// clients send. Bounded: lengths are checked against what is there, depth is fixed by the messages.
// Pure.
#pragma once

#include <string_view>

#include "base/json.h"

namespace umpteenth::server {

inline constexpr char kProtobufType[] = "application/vnd.kubernetes.protobuf";

// Error(bad_request) for a malformed body, Error(unsupported_media_type) for another kind.
json::Value decode_kube_proto(std::string_view body);

}  // namespace umpteenth::server
