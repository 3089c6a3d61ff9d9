// Makers of stores.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "store/store.h"

namespace umpteenth::store {

struct Options {
  std::filesystem::path data_dir;  // store.git, umpd.db, blobs/ below it
  std::string instance_id;
  // Called with each object that a plain-git edit brought in, and with what is in force (null: it
  // is new), on the store's thread; what it throws marks the object Declared=False, InvalidFile and
  // keeps the last valid version in force.
  std::function<json::Value(const Key& key, json::Value object, const RecordPtr& live)> admit_edit;
  size_t watch_history = 20'000;  // events kept for watches that resume
};

std::unique_ptr<Store> open_store(const Options& options);

// In memory only: for tests.
std::unique_ptr<Store> make_memory_store();

// What `umpd fsck` prints; empty where all is well.
std::vector<std::string> check_store(const std::filesystem::path& data_dir);

}  // namespace umpteenth::store
