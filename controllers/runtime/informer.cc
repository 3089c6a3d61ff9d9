#include "controllers/runtime/informer.h"

#include <utility>

#include "base/error.h"

namespace umpteenth::controllers {
namespace {
constexpr size_t kPageSize = 1000;
constexpr int kListAttempts = 5;
}  // namespace

Informer::Informer(store::Store& store, std::string kind, Sink sink)
    : store_(store), kind_(std::move(kind)), sink_(std::move(sink)) {}

uint64_t Informer::list() {
  store::Query query{.kind = kind_, .ns = "", .limit = kPageSize, .next = ""};
  while (true) {
    store::Page page = store_.list(query);
    for (const auto& record : page.items) {
      sink_({store::Event::Type::modified, record, nullptr});
    }
    if (page.next.empty()) return page.revision;
    query.next = page.next;
  }
}

void Informer::start() {
  for (int attempt = 1;; ++attempt) {
    try {
      uint64_t revision = list();
      auto subscription = store_.watch(kind_, revision, sink_);
      std::lock_guard lock(mutex_);
      subscription_ = std::move(subscription);
      return;
    } catch (const Error& e) {  // the list outlived the history that is kept: list again
      if (e.code() != Code::expired || attempt == kListAttempts) throw;
    }
  }
}

void Informer::resync() {
  try {
    list();
  } catch (const Error& e) {  // a snapshot that left in the middle: the next resync sees all
    if (e.code() != Code::expired) throw;
  }
}

void Informer::stop() {
  std::unique_ptr<store::Subscription> ending;
  std::lock_guard lock(mutex_);
  ending = std::move(subscription_);
}

}  // namespace umpteenth::controllers
