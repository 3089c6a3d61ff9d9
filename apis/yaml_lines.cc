#include "apis/yaml_lines.h"

#include <yaml-cpp/yaml.h>

#include "base/error.h"

namespace umpteenth::apis {
namespace {

constexpr int kMaxDepth = 16;

void collect(const YAML::Node& map, const std::string& prefix, int depth,
             std::vector<YamlKey>& keys) {
  if (depth > kMaxDepth) throw Error(Code::bad_request, "nested deeper than 16 levels");
  for (const auto& entry : map) {
    const std::string path = prefix + entry.first.as<std::string>();
    const bool leaf = !entry.second.IsMap();
    keys.push_back({path, entry.first.Mark().line + 1, leaf});
    if (!leaf) collect(entry.second, path + ".", depth + 1, keys);
  }
}

}  // namespace

std::vector<YamlKey> yaml_keys(std::string_view text) {
  std::vector<YamlKey> keys;
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (root.IsMap()) collect(root, "", 0, keys);
  } catch (const YAML::Exception& e) {
    throw Error(Code::bad_request, "line " + std::to_string(e.mark.line + 1) + ", column " +
                                       std::to_string(e.mark.column + 1) + ": " + e.msg);
  }
  return keys;
}

}  // namespace umpteenth::apis
