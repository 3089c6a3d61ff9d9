#include "base/json.h"

#include <stdexcept>

#include "base/error.h"

#define RAPIDJSON_ASSERT(x) \
  if (!(x)) throw std::logic_error("RapidJSON: " #x)
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <unordered_set>
#include <utility>

namespace umpteenth::json {

Value::Value() : v_(nullptr) {}
Value::Value(std::nullptr_t) : v_(nullptr) {}
Value::Value(bool b) : v_(b) {}
Value::Value(double d) : v_(d) {}
Value::Value(const char* s) : v_(std::string(s)) {}
Value::Value(std::string s) : v_(std::move(s)) {}
Value::Value(std::string_view s) : v_(std::string(s)) {}
Value::Value(Array a) : v_(std::move(a)) {}
Value::Value(IntTag, int64_t n) : v_(n) {}
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

Value Value::object(std::initializer_list<Member> members) {
  Value v;
  v.v_ = Object();
  for (const Member& m : members) v.set(m.key, m.value);
  return v;
}
Value Value::array(std::initializer_list<Value> items) { return Value(Array(items)); }
Value Value::strings(const std::vector<std::string>& items) {
  return Value(Array(items.begin(), items.end()));
}

bool Value::is_null() const { return std::holds_alternative<std::nullptr_t>(v_); }
bool Value::is_bool() const { return std::holds_alternative<bool>(v_); }
bool Value::is_int() const { return std::holds_alternative<int64_t>(v_); }
bool Value::is_number() const { return is_int() || std::holds_alternative<double>(v_); }
bool Value::is_string() const { return std::holds_alternative<std::string>(v_); }
bool Value::is_array() const { return std::holds_alternative<Array>(v_); }
bool Value::is_object() const { return std::holds_alternative<Object>(v_); }

const char* Value::type_name() const {
  static constexpr const char* kNames[] = {"null",   "boolean", "integer", "number",
                                           "string", "array",   "object"};
  return kNames[v_.index()];
}

namespace {

[[noreturn]] void wrong_type(const char* wanted, const Value& found) {
  throw Error(Code::bad_request,
              std::string("expected ") + wanted + ", found " + found.type_name());
}

const Value kNull;

}  // namespace

bool Value::as_bool() const {
  if (const bool* b = std::get_if<bool>(&v_)) return *b;
  wrong_type("a boolean", *this);
}
int64_t Value::as_int() const {
  if (const int64_t* n = std::get_if<int64_t>(&v_)) return *n;
  if (const double* d = std::get_if<double>(&v_); d && *d == static_cast<double>(int64_t(*d)))
    return static_cast<int64_t>(*d);
  wrong_type("an integer", *this);
}
double Value::as_double() const {
  if (const int64_t* n = std::get_if<int64_t>(&v_)) return static_cast<double>(*n);
  if (const double* d = std::get_if<double>(&v_)) return *d;
  wrong_type("a number", *this);
}
const std::string& Value::as_string() const {
  if (const std::string* s = std::get_if<std::string>(&v_)) return *s;
  wrong_type("a string", *this);
}
const Array& Value::items() const {
  if (const Array* a = std::get_if<Array>(&v_)) return *a;
  wrong_type("an array", *this);
}
Array& Value::items() {
  if (Array* a = std::get_if<Array>(&v_)) return *a;
  wrong_type("an array", *this);
}
const Object& Value::members() const {
  if (const Object* o = std::get_if<Object>(&v_)) return *o;
  wrong_type("an object", *this);
}
Object& Value::members() {
  if (Object* o = std::get_if<Object>(&v_)) return *o;
  wrong_type("an object", *this);
}

const Value* Value::find(std::string_view key) const {
  if (const Object* o = std::get_if<Object>(&v_))
    for (const Member& m : *o)
      if (m.key == key) return &m.value;
  return nullptr;
}
Value* Value::find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).find(key));
}
const Value& Value::get(std::string_view key) const {
  const Value* v = find(key);
  return v ? *v : kNull;
}
const Value& Value::at_path(std::initializer_list<std::string_view> keys) const {
  const Value* v = this;
  for (std::string_view key : keys)
    if (!(v = v->find(key))) return kNull;
  return *v;
}
std::string Value::get_string(std::string_view key, std::string_view otherwise) const {
  const Value* v = find(key);
  return v && v->is_string() ? v->as_string() : std::string(otherwise);
}
int64_t Value::get_int(std::string_view key, int64_t otherwise) const {
  const Value* v = find(key);
  return v && v->is_int() ? v->as_int() : otherwise;
}
double Value::get_double(std::string_view key, double otherwise) const {
  const Value* v = find(key);
  return v && v->is_number() ? v->as_double() : otherwise;
}
bool Value::get_bool(std::string_view key, bool otherwise) const {
  const Value* v = find(key);
  return v && v->is_bool() ? v->as_bool() : otherwise;
}
Value& Value::operator[](std::string_view key) {
  if (is_null()) v_ = Object();
  if (Value* v = find(key)) return *v;
  members().push_back({std::string(key), Value()});
  return members().back().value;
}
Value& Value::set(std::string_view key, Value value) {
  Value& slot = (*this)[key];
  slot = std::move(value);
  return slot;
}
bool Value::erase(std::string_view key) {
  if (Object* o = std::get_if<Object>(&v_))
    return std::erase_if(*o, [&](const Member& m) { return m.key == key; }) > 0;
  return false;
}

void Value::push_back(Value value) {
  if (is_null()) v_ = Array();
  items().push_back(std::move(value));
}
size_t Value::size() const {
  if (const Array* a = std::get_if<Array>(&v_)) return a->size();
  if (const Object* o = std::get_if<Object>(&v_)) return o->size();
  return 0;
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_int() && b.is_int()) return a.as_int() == b.as_int();
    return a.as_double() == b.as_double();
  }
  if (a.v_.index() != b.v_.index()) return false;
  if (a.is_object()) {
    if (a.size() != b.size()) return false;
    for (const Member& m : a.members()) {
      const Value* other = b.find(m.key);
      if (!other || !(m.value == *other)) return false;
    }
    return true;
  }
  if (a.is_array()) return a.items() == b.items();
  if (a.is_string()) return a.as_string() == b.as_string();
  if (a.is_bool()) return a.as_bool() == b.as_bool();
  return true;
}

namespace {

template <typename Writer>
void write(const Value& v, Writer& w) {
  if (v.is_null()) {
    w.Null();
  } else if (v.is_bool()) {
    w.Bool(v.as_bool());
  } else if (v.is_int()) {
    w.Int64(v.as_int());
  } else if (v.is_number()) {
    w.Double(v.as_double());
  } else if (v.is_string()) {
    w.String(v.as_string().data(), static_cast<rapidjson::SizeType>(v.as_string().size()));
  } else if (v.is_array()) {
    w.StartArray();
    for (const Value& item : v.items()) write(item, w);
    w.EndArray();
  } else {
    w.StartObject();
    for (const Member& m : v.members()) {
      w.Key(m.key.data(), static_cast<rapidjson::SizeType>(m.key.size()));
      write(m.value, w);
    }
    w.EndObject();
  }
}

std::string clip(const std::string& text) {
  return text.size() > 40 ? text.substr(0, 40) + "…" : text;
}

// Builds the tree from RapidJSON's events; throws for duplicates and depth.
class Builder {
 public:
  Builder(Value& root, size_t max_depth) : root_(root), max_depth_(max_depth) {}

  bool Null() { return add(nullptr); }
  bool Bool(bool b) { return add(b); }
  // Numbers come as text (RapidJSON's own conversion has undefined behaviour for 0e060).
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(int64_t) { return false; }
  bool Uint64(uint64_t) { return false; }
  bool Double(double) { return false; }
  bool RawNumber(const char* s, rapidjson::SizeType n, bool) {
    const std::string text(s, n);
    if (text.find_first_of(".eE") == std::string::npos) {
      int64_t whole = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + n, whole);
      if (error == std::errc() && end == text.data() + n) return add(whole);
    }
    double number = 0;
    const auto result = std::from_chars(text.data(), text.data() + n, number);
    if (result.ec == std::errc::result_out_of_range) {  // too large, or too small and so zero
      number = std::strtod(text.c_str(), nullptr);
      if (std::isinf(number)) throw Error(Code::bad_request, "number too large: " + clip(text));
    }
    return add(number);
  }
  bool String(const char* s, rapidjson::SizeType n, bool) { return add(checked(s, n)); }
  bool StartObject() { return open(Value::object()); }
  bool Key(const char* s, rapidjson::SizeType n, bool) {
    std::string key = checked(s, n);
    Frame& top = stack_.back();
    const bool fresh = top.many ? top.keys.insert(key).second : !top.value->find(key);
    if (!fresh) throw Error(Code::bad_request, "duplicate key " + quote(key));
    top.value->members().push_back({key, Value()});
    if (!top.many && top.value->size() > 16) {  // a set once a linear search would cost
      for (const Member& m : top.value->members()) top.keys.insert(m.key);
      top.many = true;
    }
    return true;
  }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool StartArray() { return open(Value::array()); }
  bool EndArray(rapidjson::SizeType) { return close(); }

 private:
  struct Frame {
    Value* value;
    bool many = false;
    std::unordered_set<std::string> keys;
  };

  // RapidJSON lets half of a surrogate pair through where it is escaped: \udc00 would become bytes
  // that are no UTF-8, and that nobody could read back.
  static std::string checked(const char* s, rapidjson::SizeType n) {
    std::string text(s, n);
    for (size_t at = text.find('\xED'); at != std::string::npos; at = text.find('\xED', at + 1))
      if (at + 1 < n && static_cast<unsigned char>(text[at + 1]) >= 0xA0)
        throw Error(Code::bad_request, "invalid JSON: half a surrogate pair in a string");
    return text;
  }
  Value& place(Value v) {
    if (stack_.empty()) return root_ = std::move(v);
    Value& top = *stack_.back().value;
    if (top.is_array()) {
      top.items().push_back(std::move(v));
      return top.items().back();
    }
    return top.members().back().value = std::move(v);
  }
  bool add(Value v) {
    place(std::move(v));
    return true;
  }
  bool open(Value v) {
    if (stack_.size() >= max_depth_)
      throw Error(Code::bad_request,
                  "nested deeper than " + std::to_string(max_depth_) + " levels");
    Value& placed = place(std::move(v));
    stack_.push_back({&placed, false, {}});
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  Value& root_;
  size_t max_depth_;
  std::vector<Frame> stack_;
};

}  // namespace

std::string Value::dump() const {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  write(*this, writer);
  return {buffer.GetString(), buffer.GetSize()};
}
std::string Value::dump_pretty() const {
  rapidjson::StringBuffer buffer;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer(buffer);
  write(*this, writer);
  return {buffer.GetString(), buffer.GetSize()};
}

Value parse(std::string_view text, const ParseLimits& limits) {
  if (text.size() > limits.max_bytes)
    throw Error(Code::too_large, "JSON text of " + std::to_string(text.size()) +
                                     " bytes: limit is " + std::to_string(limits.max_bytes));
  Value root;
  Builder builder(root, limits.max_depth);
  rapidjson::MemoryStream raw(text.data(), text.size());
  rapidjson::EncodedInputStream<rapidjson::UTF8<>, rapidjson::MemoryStream> stream(raw);
  rapidjson::Reader reader;
  constexpr unsigned kFlags =
      rapidjson::kParseValidateEncodingFlag | rapidjson::kParseNumbersAsStringsFlag;
  const auto result = reader.Parse<kFlags>(stream, builder);
  if (result.IsError())
    throw Error(Code::bad_request, "invalid JSON at byte " + std::to_string(result.Offset()) +
                                       ": " + rapidjson::GetParseError_En(result.Code()));
  return root;
}

std::string quote(std::string_view text) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace umpteenth::json
