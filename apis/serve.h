// What the API serves besides objects: Status, Table, discovery, OpenAPI v3. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apis/kind.h"

namespace umpteenth::apis {

struct ErrorSubject {  // what Status.details names
  std::string group, resource, kind, name;
};
json::Value status_of(const Error& error, const ErrorSubject& subject);
// The error a Status document stands for, for clients.
Error error_from_status(const json::Value& status, int http_status);

enum class IncludeObject { none, metadata, object };
// metadata is left empty: resourceVersion and continue are the server's.
json::Value make_table(const Kind& kind, const std::vector<json::Value>& objects,
                       IncludeObject include, Time now, bool with_columns);
json::Value partial_metadata(const json::Value& object);  // PartialObjectMetadata

json::Value legacy_resource_list();       // /apis/umpteenth.dev/v1alpha1
json::Value aggregated_discovery();       // APIGroupDiscoveryList of our group
json::Value core_resource_list();         // /api/v1
json::Value core_aggregated_discovery();  // APIGroupDiscoveryList of core/v1
json::Value openapi_v3();                 // of our group version
json::Value core_openapi_v3();            // of core/v1: Namespace, Event

// core/v1 kinds that we serve as views (Namespace of Workspace, Event); same machinery.
const Kind& namespace_kind();
const Kind& event_kind();

}  // namespace umpteenth::apis
