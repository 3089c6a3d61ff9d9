// A JSON value with regular semantics (copy, ==). RapidJSON parses and writes it, in json.cc only.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace umpteenth::json {

class Value;
struct Member;
using Array = std::vector<Value>;
using Object = std::vector<Member>;  // keeps the order of insertion; keys are unique

class Value {
 public:
  Value();                    // null
  Value(std::nullptr_t);      // NOLINT(google-explicit-constructor): literals read as JSON
  Value(bool b);              // NOLINT(google-explicit-constructor)
  Value(double d);            // NOLINT(google-explicit-constructor)
  Value(const char* s);       // NOLINT(google-explicit-constructor)
  Value(std::string s);       // NOLINT(google-explicit-constructor)
  Value(std::string_view s);  // NOLINT(google-explicit-constructor)
  Value(Array a);             // NOLINT(google-explicit-constructor)
  template <typename T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  Value(T n) : Value(IntTag{}, static_cast<int64_t>(n)) {}  // NOLINT(google-explicit-constructor)
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  static Value object(std::initializer_list<Member> members = {});
  static Value array(std::initializer_list<Value> items = {});
  static Value strings(const std::vector<std::string>& items);

  bool is_null() const;
  bool is_bool() const;
  bool is_int() const;  // an integer that fits int64
  bool is_number() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;
  const char* type_name() const;  // null, boolean, integer, number, string, array, object

  // Error(bad_request, "expected a string, found an array") where the type is another.
  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;
  const std::string& as_string() const;
  const Array& items() const;
  Array& items();
  const Object& members() const;
  Object& members();

  // Objects. find/get/at_path of anything else than an object answer "absent".
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  const Value& get(std::string_view key) const;  // a shared null where absent
  const Value& at_path(std::initializer_list<std::string_view> keys) const;
  std::string get_string(std::string_view key, std::string_view otherwise = {}) const;
  int64_t get_int(std::string_view key, int64_t otherwise = 0) const;
  double get_double(std::string_view key, double otherwise = 0) const;
  bool get_bool(std::string_view key, bool otherwise = false) const;
  Value& operator[](std::string_view key);  // makes an object of null, inserts null where absent
  Value& set(std::string_view key, Value value);
  bool erase(std::string_view key);

  void push_back(Value value);  // makes an array of null
  size_t size() const;          // of an array or object; 0 otherwise
  bool empty() const { return size() == 0; }

  // Objects are equal whatever the order of their keys; 1 == 1.0.
  friend bool operator==(const Value& a, const Value& b);

  std::string dump() const;         // compact
  std::string dump_pretty() const;  // four spaces, as kubectl prints

 private:
  struct IntTag {};
  Value(IntTag, int64_t n);
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object> v_;
};

struct Member {
  std::string key;
  Value value;
};

struct ParseLimits {
  size_t max_depth = 64;
  size_t max_bytes = 64U << 20;
};

// Strict RFC 8259, UTF-8 checked. Error(bad_request) names the byte offset; duplicate keys,
// nesting beyond max_depth and anything after the value are refused.
Value parse(std::string_view text, const ParseLimits& limits = {});

// The text of a JSON string literal, quotes included.
std::string quote(std::string_view text);

}  // namespace umpteenth::json
