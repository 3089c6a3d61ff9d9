#include "apis/yaml_lines.h"

#include <yaml-cpp/yaml.h>

#include "apis/schema.h"
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

bool leads_to(const std::string& path, std::string_view wanted) {
  return wanted.starts_with(path) &&
         (wanted.size() == path.size() || wanted[path.size()] == '.' || wanted[path.size()] == '[');
}

// The line of the wanted field below this node, or `line`, its own, where it goes no further.
int line_below(const YAML::Node& node, int line, const std::string& path, std::string_view wanted) {
  if (node.IsMap()) {
    for (const auto& entry : node) {
      const std::string below = join_path(path, entry.first.as<std::string>());
      if (leads_to(below, wanted))
        return line_below(entry.second, entry.first.Mark().line + 1, below, wanted);
    }
  }
  if (node.IsSequence()) {
    for (size_t i = 0; i < node.size(); ++i) {
      const std::string below = path + "[" + std::to_string(i) + "]";
      if (leads_to(below, wanted))
        return line_below(node[i], node[i].Mark().line + 1, below, wanted);
    }
  }
  return line;
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

int yaml_line_of(std::string_view text, size_t document, std::string_view path) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (document >= documents.size()) return 0;
    const YAML::Node& root = documents[document];
    return line_below(root, root.Mark().line + 1, "", path);
  } catch (const YAML::Exception&) {  // a place that cannot be told is no error of its own
    return 0;
  }
}

}  // namespace umpteenth::apis
