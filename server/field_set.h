// Sets of leaf paths, read from and written as FieldsV1 ({"f:spec":{"f:image":{}}}). Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/json.h"

namespace umpteenth::server {

using Path = std::vector<std::string>;

class FieldSet {
 public:
  static FieldSet from_v1(const json::Value& fields_v1);  // what cannot be read is left out
  json::Value to_v1() const;

  bool empty() const { return paths_.empty(); }
  auto begin() const { return paths_.begin(); }
  auto end() const { return paths_.end(); }
  void insert(Path path) { paths_.insert(std::move(path)); }
  // The path itself, a leaf above it or a leaf below it.
  bool overlaps(const Path& path) const;
  void remove_overlapping(const Path& path);
  bool operator==(const FieldSet&) const = default;

 private:
  std::set<Path> paths_;
};

const json::Value* find_at(const json::Value& object, const Path& path);
void set_at(json::Value& object, const Path& path, const json::Value& value);
void erase_at(json::Value& object, const Path& path);  // and the maps that it leaves empty
std::string to_string(const Path& path);               // .spec.image

}  // namespace umpteenth::server
