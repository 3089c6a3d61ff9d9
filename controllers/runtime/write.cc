#include "controllers/runtime/write.h"

#include <utility>

namespace umpteenth::controllers {

store::RecordPtr write_status(store::Store& store, const store::Record& record, json::Value status,
                              const std::string& actor) {
  json::Value object = record.parse();
  if (object.get("status") == status) return nullptr;
  object.set("status", std::move(status));
  return write_object(store, record, std::move(object), actor,
                      "status of " + store::to_string(record.key));
}

store::RecordPtr write_object(store::Store& store, const store::Record& record, json::Value object,
                              const std::string& actor, const std::string& message) {
  return store.commit_one({store::Verb::update, record.key, std::move(object), record.revision},
                          actor, message);
}

}  // namespace umpteenth::controllers
