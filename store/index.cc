#include "store/index.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace umpteenth::store {
namespace {

constexpr size_t kMaxSnapshots = 128;
constexpr size_t kMaxSnapshotItems = 2'000'000;
constexpr auto kSnapshotLife = std::chrono::minutes(5);

struct Token {
  uint64_t revision = 0;
  size_t offset = 0;
};

std::string to_text(const Token& token) {
  return std::to_string(token.revision) + "." + std::to_string(token.offset);
}

Token token_from(const std::string& text) {
  Token token;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, token.revision);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '.') {
    const auto second = std::from_chars(first.ptr + 1, end, token.offset);
    if (second.ec == std::errc() && second.ptr == end) return token;
  }
  throw Error(Code::bad_request, "continue key is not valid: it was not made by this server");
}

}  // namespace

RecordPtr Index::find(const Key& key) const {
  std::shared_lock lock(mutex_);
  const auto it = records_.find(key);
  return it == records_.end() ? nullptr : *it;
}

uint64_t Index::revision() const {
  std::shared_lock lock(mutex_);
  return revision_;
}

size_t Index::size() const {
  std::shared_lock lock(mutex_);
  return records_.size();
}

void Index::apply(const std::vector<Update>& updates, uint64_t revision) {
  std::unique_lock lock(mutex_);
  for (const Update& update : updates) {
    const auto it = records_.find(update.record->key);
    if (it != records_.end()) {
      auto node = records_.extract(it);
      if (update.verb == Verb::remove) continue;
      node.value() = update.record;
      records_.insert(std::move(node));
    } else if (update.verb != Verb::remove) {
      records_.insert(records_.end(), update.record);
    }
  }
  revision_ = std::max(revision_, revision);
}

std::vector<RecordPtr> Index::range(const std::string& kind, const std::string& ns, size_t limit,
                                    size_t& total) const {
  std::vector<RecordPtr> items;
  total = 0;
  for (auto it = records_.lower_bound(Key{kind, ns, ""}); it != records_.end(); ++it) {
    const Key& key = (*it)->key;
    if (key.kind != kind || (!ns.empty() && key.ns != ns)) break;
    ++total;
    if (limit == 0 || items.size() < limit) items.push_back(*it);
  }
  return items;
}

Page Index::list(const Query& query) const {
  if (!query.next.empty()) return next_page(query);
  Page page;
  size_t total = 0;
  {
    std::shared_lock lock(mutex_);
    page.revision = revision_;
    page.items = range(query.kind, query.ns, 0, total);
  }
  if (query.limit == 0 || total <= query.limit) return page;
  page.remaining = total - query.limit;
  page.next = to_text({page.revision, query.limit});
  std::vector<RecordPtr> first(page.items.begin(),
                               page.items.begin() + static_cast<std::ptrdiff_t>(query.limit));
  keep({query.kind, query.ns, page.revision, std::move(page.items), {}});
  page.items = std::move(first);
  return page;
}

Page Index::next_page(const Query& query) const {
  const Token token = token_from(query.next);
  std::lock_guard lock(snapshots_mutex_);
  drop_old_snapshots();
  const auto it = std::find_if(snapshots_.begin(), snapshots_.end(), [&](const Snapshot& s) {
    return s.revision == token.revision && s.kind == query.kind && s.ns == query.ns;
  });
  if (it == snapshots_.end() || token.offset > it->items.size())
    throw Error(Code::expired,
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter.");
  it->used = std::chrono::steady_clock::now();
  const size_t left = it->items.size() - token.offset;
  const size_t count = query.limit == 0 ? left : std::min(left, query.limit);
  const auto begin = it->items.begin() + static_cast<std::ptrdiff_t>(token.offset);
  Page page;
  page.revision = token.revision;
  page.items.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
  page.remaining = left - count;
  if (page.remaining > 0) page.next = to_text({token.revision, token.offset + count});
  snapshots_.splice(snapshots_.end(), snapshots_, it);
  return page;
}

void Index::keep(Snapshot snapshot) const {
  std::lock_guard lock(snapshots_mutex_);
  snapshot.used = std::chrono::steady_clock::now();
  std::erase_if(snapshots_, [&](const Snapshot& s) {
    return s.revision == snapshot.revision && s.kind == snapshot.kind && s.ns == snapshot.ns;
  });
  snapshots_.push_back(std::move(snapshot));
  drop_old_snapshots();
}

void Index::drop_old_snapshots() const {
  const auto oldest = std::chrono::steady_clock::now() - kSnapshotLife;
  std::erase_if(snapshots_, [&](const Snapshot& s) { return s.used < oldest; });
  size_t items = 0;
  for (const Snapshot& s : snapshots_) items += s.items.size();
  while (snapshots_.size() > kMaxSnapshots ||
         (items > kMaxSnapshotItems && snapshots_.size() > 1)) {
    items -= snapshots_.front().items.size();
    snapshots_.pop_front();
  }
}

}  // namespace umpteenth::store
