// What every store of ours has: reads from the index in memory, watches from the hub.
#pragma once

#include "store/index.h"
#include "store/store.h"
#include "store/watch_hub.h"

namespace umpteenth::store {

class IndexedStore : public Store {
 public:
  explicit IndexedStore(size_t watch_history) : hub_(watch_history) {}

  RecordPtr find(const Key& key) const override { return index_.find(key); }
  Page list(const Query& query) const override { return index_.list(query); }
  uint64_t revision() const override { return index_.revision(); }
  std::unique_ptr<Subscription> watch(std::string kind, uint64_t from,
                                      std::function<void(const Event&)> sink) override {
    return hub_.watch(std::move(kind), from, index_.revision(), std::move(sink));
  }
  uint64_t oldest_watchable() const override { return hub_.oldest(); }

 protected:
  Index index_;
  WatchHub hub_;
};

}  // namespace umpteenth::store
