// Schemas as readable C++: text("what it is").max_length(200). Each node is an OpenAPI v3 schema.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace umpteenth::apis::schema {

class Node {
 public:
  Node(std::string_view type, std::string_view description);

  Node& one_of(std::initializer_list<const char*> values);
  Node& min_length(int64_t n) { return put("minLength", n); }
  Node& max_length(int64_t n) { return put("maxLength", n); }  // in characters
  Node& pattern(std::string_view regex) { return put("pattern", regex); }
  Node& format(std::string_view name) { return put("format", name); }
  Node& range(json::Value min, json::Value max);
  Node& at_least(json::Value min) { return put("minimum", std::move(min)); }
  Node& min_items(int64_t n) { return put("minItems", n); }
  Node& max_items(int64_t n) { return put("maxItems", n); }
  Node& max_properties(int64_t n) { return put("maxProperties", n); }
  Node& by_default(json::Value value) { return put("default", std::move(value)); }
  Node& nullable() { return put("nullable", true); }
  Node& open() { return put("x-kubernetes-preserve-unknown-fields", true); }
  Node& unique() { return put("x-kubernetes-list-type", "set"); }
  Node& unique_by(std::string_view key);
  Node& required() {
    required_ = true;
    return *this;
  }

  bool is_required() const { return required_; }
  json::Value take() { return std::move(value_); }
  const json::Value& value() const { return value_; }
  Node& put(std::string_view key, json::Value value);

 private:
  json::Value value_;
  bool required_ = false;
};

using Fields = std::vector<std::pair<const char*, Node>>;

Node text(std::string_view description);
Node integer(std::string_view description);
Node number(std::string_view description);
Node boolean(std::string_view description);
Node any(std::string_view description);  // any JSON, null too
Node list(std::string_view description, Node item);
Node map(std::string_view description, Node value);
Node object(std::string_view description, const Fields& fields);
// An object that materialises with its fields' defaults where it is absent.
Node section(std::string_view description, const Fields& fields);
Node time(std::string_view description);  // RFC 3339
// A status: observedGeneration, conditions and what is given; other members are kept.
Node status(const Fields& fields);

}  // namespace umpteenth::apis::schema
