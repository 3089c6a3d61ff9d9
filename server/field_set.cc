#include "server/field_set.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace umpteenth::server {
namespace {

void read_v1(const json::Value& tree, Path& path, FieldSet& into) {
  if (!tree.is_object()) return;
  bool leaf = true;
  for (const json::Member& m : tree.members()) {
    if (!m.key.starts_with("f:")) continue;  // "." and list keys: lists are one leaf here
    leaf = false;
    path.push_back(m.key.substr(2));
    read_v1(m.value, path, into);
    path.pop_back();
  }
  if (leaf && !path.empty()) into.insert(path);
}

bool is_prefix(const Path& shorter, const Path& longer) {
  return shorter.size() <= longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

}  // namespace

FieldSet FieldSet::from_v1(const json::Value& fields_v1) {
  FieldSet set;
  Path path;
  read_v1(fields_v1, path, set);
  return set;
}

json::Value FieldSet::to_v1() const {
  json::Value tree = json::Value::object();
  for (const Path& path : paths_) {
    json::Value* at = &tree;
    for (const std::string& step : path) {
      at = &(*at)["f:" + step];
      if (at->is_null()) *at = json::Value::object();
    }
  }
  return tree;
}

bool FieldSet::overlaps(const Path& path) const {
  for (size_t n = 1; n <= path.size(); ++n)
    if (paths_.contains(Path(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(n))))
      return true;
  const auto below = paths_.lower_bound(path);
  return below != paths_.end() && is_prefix(path, *below);
}

void FieldSet::remove_overlapping(const Path& path) {
  std::erase_if(paths_, [&](const Path& p) { return is_prefix(p, path) || is_prefix(path, p); });
}

const json::Value* find_at(const json::Value& object, const Path& path) {
  const json::Value* at = &object;
  for (const std::string& step : path)
    if (!(at = at->find(step))) return nullptr;
  return at;
}

void set_at(json::Value& object, const Path& path, const json::Value& value) {
  json::Value* at = &object;
  for (const std::string& step : path) {
    if (!at->is_object()) *at = json::Value::object();
    at = &(*at)[step];
  }
  *at = value;
}

void erase_at(json::Value& object, const Path& path) {
  Path parent(path.begin(), path.end() - 1);
  auto* holder = const_cast<json::Value*>(find_at(object, parent));
  if (!holder || !holder->erase(path.back())) return;
  if (holder->empty() && parent.size() > 1) erase_at(object, parent);
}

std::string to_string(const Path& path) {
  std::string text;
  for (const std::string& step : path) text += "." + step;
  return text;
}

}  // namespace umpteenth::server
