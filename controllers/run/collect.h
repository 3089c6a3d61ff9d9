// What a run leaves in /ump/outputs, read as foreign bytes: regular files only, nothing followed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/run.h"

namespace umpteenth::controllers::run {

inline constexpr size_t kMaxArtifactBytes = 50U << 20;
inline constexpr size_t kMaxArtifacts = 10'000;

struct Collected {
  std::vector<apis::Artifact> artifacts;  // by path
  std::vector<std::string> refused;       // "path: why", at most 20, then how many more
};

// archive: the tar of the folder, its entries below one root folder. keep stores bytes and returns
// their digest; it is called only when the whole archive is acceptable. Error(too_large) beyond
// 50 MiB or 10 000 files, Error(bad_request) for what is no tar.
Collected collect_artifacts(std::string_view archive,
                            const std::function<std::string(std::string_view)>& keep);

}  // namespace umpteenth::controllers::run
