#include "store/store.h"

namespace umpteenth::store {

std::string to_string(const Key& key) {
  return key.ns.empty() ? key.kind + "/" + key.name : key.kind + "/" + key.ns + "/" + key.name;
}

RecordPtr Store::commit_one(Change change, std::string actor, std::string message) {
  Commit one;
  one.changes.push_back(std::move(change));
  one.actor = std::move(actor);
  one.message = std::move(message);
  return commit(one).front();
}

}  // namespace umpteenth::store
