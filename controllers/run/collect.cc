#include "controllers/run/collect.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "engine/tar.h"
#include "runs/text.h"

namespace umpteenth::controllers::run {
namespace {

constexpr size_t kNamedRefusals = 20;

std::string_view below_root(std::string_view name) {
  size_t slash = name.find('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(slash + 1);
}

std::string refusal_of(const engine::TarEntry& entry) {
  using Type = engine::TarEntry::Type;
  switch (entry.type) {
    case Type::symlink:
      return "symbolic links are not collected";
    case Type::hardlink:
      return "hard links are not collected";
    case Type::special:
      return "devices, fifos and sparse files are not collected";
    case Type::file:
    case Type::directory:
      break;
  }
  if (!runs::is_utf8(entry.name)) return "its name is not UTF-8 text";
  bool printable = std::ranges::none_of(
      entry.name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  return printable ? "" : "its name has control characters";
}

}  // namespace

Collected collect_artifacts(std::string_view archive,
                            const std::function<std::string(std::string_view)>& keep) {
  engine::TarLimits limits;
  limits.max_entries = kMaxArtifacts;
  limits.max_bytes = kMaxArtifactBytes;
  limits.links = true;  // so that they are refused one by one, by name
  limits.special = true;
  std::map<std::string, std::string_view> files;  // the last of several entries of one name counts
  Collected result;
  size_t refused = 0;
  engine::read_tar(archive, limits, [&](const engine::TarEntry& entry) {
    std::string_view path = below_root(entry.name);
    std::string why = refusal_of(entry);
    if (!why.empty()) {
      if (++refused <= kNamedRefusals) {
        result.refused.push_back(log::clip(path.empty() ? entry.name : path) + ": " + why);
      }
      return;
    }
    if (entry.type == engine::TarEntry::Type::file && !path.empty()) {
      files[std::string(path)] = entry.data;
    }
  });
  if (refused > kNamedRefusals) {
    result.refused.push_back("and " + std::to_string(refused - kNamedRefusals) + " more");
  }
  for (const auto& [path, data] : files) {
    result.artifacts.push_back({path, keep(data), static_cast<int64_t>(data.size())});
  }
  return result;
}

}  // namespace umpteenth::controllers::run
