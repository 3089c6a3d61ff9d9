// ModelProvider: a model API. Type Scripted answers from a transcript, for demos and tests.
#pragma once

#include <string>
#include <vector>

#include "apis/common.h"
#include "apis/kind.h"

namespace umpteenth::apis {

struct ModelProviderSpec {
  std::string type;      // Anthropic | OpenAI | OpenAICompatible | Scripted
  std::string base_url;  // "" = the official one
  SecretRef api_key;
  struct Model {
    std::string name, id;
    int64_t context_window = 128'000;
    double price_input = 0, price_output = 0, price_cache_read = 0, price_cache_write = 0;
    bool operator==(const Model&) const = default;
  };
  std::vector<Model> models;
  int64_t max_concurrent = 8;
  json::Value script = json::Value::array();  // rules, see docs/scripted.md
  bool operator==(const ModelProviderSpec&) const = default;
};

const Kind& model_provider_kind();
ModelProviderSpec model_provider_spec_from(const json::Value& spec);
json::Value to_json(const ModelProviderSpec& spec);

}  // namespace umpteenth::apis
