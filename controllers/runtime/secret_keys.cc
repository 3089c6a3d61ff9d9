#include "controllers/runtime/secret_keys.h"

namespace umpteenth::controllers {

std::optional<std::set<std::string>> find_secret_keys(const store::Store& store,
                                                      const std::string& ns,
                                                      const std::string& secret) {
  auto record = store.find({"secrets", ns, secret});
  if (!record) return std::nullopt;
  std::set<std::string> keys;
  json::Value object = record->parse();
  const json::Value& sealed = object.at_path({"spec", "sealedData"});
  if (!sealed.is_object()) return keys;
  for (const auto& [name, _] : sealed.members()) keys.insert(name);
  return keys;
}

}  // namespace umpteenth::controllers
