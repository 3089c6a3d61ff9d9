// Where things stand in a YAML file, for messages about it.
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

// The line, from 1, of a field in text that parse_yaml has accepted; the document is counted from
// 0, the path is as Cause::field words it (spec.secrets[0].env, metadata.labels[a/b]). Where the
// field is absent, the line of the nearest one around it: what a missing field misses. 0 where
// there is no such document.
int yaml_line_of(std::string_view text, size_t document, std::string_view path);

}  // namespace umpteenth::apis
