// Content negotiation: what the client accepts, and what its body is. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/http/message.h"
#include "base/json.h"

namespace umpteenth::server {

enum class Shape { object, table, partial, partial_list };

struct Accepted {
  Shape shape = Shape::object;
  bool yaml = false;
  std::string meta_version = "v1";  // of meta.k8s.io, for a Table
};
// The first media range that can be served. Error(not_acceptable).
Accepted negotiate(std::string_view accept);

// Whether the client takes aggregated discovery, and in which version ("v2", "v2beta1"; "" = no).
std::string aggregated_version(std::string_view accept);

enum class BodyType {
  json,
  yaml,
  protobuf,
  merge_patch,
  json_patch,
  apply_patch,
  strategic,
  other
};
BodyType body_type(const http::Request& request);  // a missing Content-Type is JSON

// A whole object as JSON, YAML or (where allowed) protobuf. Error(bad_request),
// Error(unsupported_media_type).
json::Value read_body(const http::Request& request, bool protobuf_too);

}  // namespace umpteenth::server
