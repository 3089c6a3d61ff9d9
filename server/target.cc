#include "server/target.h"

#include <vector>

namespace umpteenth::server {
namespace {

// Takes the next segment off; "" at the end.
std::string_view take(std::string_view& rest) {
  const size_t slash = rest.find('/');
  const std::string_view segment = rest.substr(0, slash);
  rest = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  return segment;
}

}  // namespace

std::optional<Target> parse_target(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  std::string_view group, rest = path;
  if (rest.starts_with("/api/")) {
    rest.remove_prefix(5);
  } else if (rest.starts_with("/apis/")) {
    rest.remove_prefix(6);
    group = take(rest);
    if (group.empty()) return std::nullopt;
  } else {
    return std::nullopt;
  }
  const std::string_view version = take(rest);
  Target target;
  std::string_view plural = take(rest);
  if (plural == "namespaces" && !rest.empty()) {
    std::string_view probe = rest;
    const std::string_view ns = take(probe);
    if (!probe.empty() && probe != "status" && probe != "finalize") {
      target.ns = ns;
      rest = probe;
      plural = take(rest);
    }
  }
  target.resource = find_resource(group, version, plural);
  if (!target.resource) return std::nullopt;
  const bool namespaced = target.resource->kind->namespaced();
  if (!namespaced && !target.ns.empty()) return std::nullopt;
  target.name = take(rest);
  if (namespaced && target.ns.empty() && !target.name.empty()) return std::nullopt;
  target.subresource = take(rest);
  target.rest = rest;
  return target;
}

}  // namespace umpteenth::server
