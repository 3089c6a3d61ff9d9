// apis/yaml: manifests. What is accepted is written as YAML and read back as the same value; so is
// every JSON value, which is how objects of the API come into git.
#include "apis/yaml.h"

#include "base/json.h"
#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  json::Value value;
  if (fuzz::accepted([&] { value = json::parse(fuzz::text_of(data, size)); }) && !value.is_null())
    fuzz::require(apis::parse_yaml_one(apis::to_yaml(value)) == value, "JSON survives as YAML");
  std::vector<apis::YamlDocument> documents;
  if (!fuzz::accepted([&] { documents = apis::parse_yaml(fuzz::text_of(data, size), 1U << 16); }))
    return 0;
  for (const apis::YamlDocument& document : documents) {
    fuzz::require(document.line >= 1, "documents begin on a line");
    if (document.value.is_null()) continue;  // an empty document
    const std::string written = apis::to_yaml(document.value);
    fuzz::require(apis::parse_yaml_one(written) == document.value,
                  "YAML survives writing and reading");
  }
  return 0;
}
