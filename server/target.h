// What a path under /api and /apis names. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/resource.h"

namespace umpteenth::server {

struct Target {
  const Resource* resource = nullptr;
  std::string ns, name, subresource;
  std::string rest;  // below the subresource: runs/NAME/artifacts/a/b.txt has "a/b.txt"

  bool collection() const { return name.empty(); }
};

// nullopt where the path names no resource that is served.
std::optional<Target> parse_target(std::string_view path);

}  // namespace umpteenth::server
