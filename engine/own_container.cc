// Whether umpd itself runs in a container of the engine.
#include <algorithm>

#include "base/error.h"
#include "engine/relay.h"

namespace umpteenth::engine {
namespace {

constexpr size_t kIdLength = 64;

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// 64 hex digits right after "containers/", "docker/" or "docker-".
std::optional<std::string> id_in(std::string_view text) {
  for (const std::string_view before : {"containers/", "docker/", "docker-", "libpod-"}) {
    for (size_t at = 0; (at = text.find(before, at)) != std::string_view::npos;) {
      at += before.size();
      const std::string_view id = text.substr(at, kIdLength);
      const bool ends = at + kIdLength >= text.size() || !is_hex(text[at + kIdLength]);
      if (id.size() == kIdLength && ends && std::all_of(id.begin(), id.end(), is_hex))
        return std::string(id);
    }
  }
  return std::nullopt;
}

// A host that runs containers has mounts of theirs too, but never over its own /etc.
std::optional<std::string> id_in_own_mounts(std::string_view mountinfo) {
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    const std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    for (const std::string_view over : {" /etc/hostname ", " /etc/hosts ", " /etc/resolv.conf "})
      if (const size_t at = line.find(over); at != std::string_view::npos)
        if (auto id = id_in(line.substr(0, at))) return id;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> container_id_candidates(std::string_view mountinfo,
                                                 std::string_view cgroup,
                                                 std::string_view hostname) {
  std::vector<std::string> ids;
  if (auto id = id_in_own_mounts(mountinfo)) ids.push_back(*id);
  if (auto id = id_in(cgroup)) ids.push_back(*id);
  if (hostname.size() == 12 && std::all_of(hostname.begin(), hostname.end(), is_hex))
    ids.emplace_back(hostname);
  return ids;
}

std::optional<std::string> find_own_container(Engine& engine, std::string_view mountinfo,
                                              std::string_view cgroup, std::string_view hostname) {
  const auto candidates = container_id_candidates(mountinfo, cgroup, hostname);
  if (candidates.empty()) return std::nullopt;
  for (const Container& listed : engine.list_containers({}))
    for (const std::string& id : candidates) {
      if (listed.id != id && !(id.size() == 12 && listed.id.starts_with(id))) continue;
      const auto c = engine.find_container(listed.id);
      if (c && c->state == "running" && c->hostname == hostname) return c->id;
    }
  return std::nullopt;
}

}  // namespace umpteenth::engine
