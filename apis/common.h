// Small structs that several kinds share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/schema_builder.h"
#include "base/json.h"

namespace umpteenth::apis {

struct Resources {
  double cpus = 1;            // 0.1–64
  int64_t memory_mib = 1024;  // 64–262144
  int64_t pids = 256;
  int64_t disk_mib = 0;  // 0 = no limit
  bool operator==(const Resources&) const = default;
};

struct SecretRef {
  std::string secret, key;  // key "" = `value`, else the only key
  bool operator==(const SecretRef&) const = default;
};

struct ModelRef {
  std::string provider, name, utility;
  bool operator==(const ModelRef&) const = default;
};

Resources resources_from(const json::Value& v);
json::Value to_json(const Resources& r);
SecretRef secret_ref_from(const json::Value& v);
json::Value to_json(const SecretRef& ref);
ModelRef model_ref_from(const json::Value& v);
json::Value to_json(const ModelRef& ref);

namespace schema {
Node resources();
Node secret_ref(std::string_view description);
Node model_ref();
Node resource_name(std::string_view description);
}  // namespace schema

}  // namespace umpteenth::apis
