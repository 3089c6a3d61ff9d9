// Our structs as the Docker Engine API's JSON, and back. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "engine/types.h"

namespace umpteenth::engine {

json::Value container_body(const ContainerSpec& spec);
json::Value network_body(const NetworkSpec& spec);
json::Value connect_body(const std::string& container, const NetworkAttachment& how);
json::Value exec_body(const ExecSpec& spec);
std::string label_filter(const Labels& labels);  // for the query's `filters`
// Dockerfile instructions for commit and import, each quoted.
std::vector<std::string> change_lines(const ImageChanges& changes);

Container container_from_inspect(const json::Value& v);
Container container_from_list(const json::Value& v);
Network network_from(const json::Value& v);
Image image_from_inspect(const json::Value& v);
Image image_from_list(const json::Value& v);
Info info_from(const json::Value& info, const json::Value& version);
EngineEvent event_from(const json::Value& v);

// Whether the engine answered for that very image, not for one whose id begins so.
bool names_image(const Image& image, const std::string& reference);
bool labels_match(const Labels& have, const Labels& want);

}  // namespace umpteenth::engine
