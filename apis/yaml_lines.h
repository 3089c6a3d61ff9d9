// Where the keys of a YAML file stand, for messages about configuration files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace umpteenth::apis {

struct YamlKey {
  std::string path;  // dotted, e.g. server.tls.mode
  int line;          // from 1
  bool leaf;         // its value is not a mapping
};

// All mapping keys of one document outside of sequences, in file order. Text that is not YAML is
// Error(bad_request) with line and column.
std::vector<YamlKey> yaml_keys(std::string_view text);

}  // namespace umpteenth::apis
