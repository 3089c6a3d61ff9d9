#include "apis/patch.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace umpteenth::apis {
namespace {

constexpr size_t kMaxOperations = 10'000;
constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxAdded = 16U << 20;  // bytes that one patch may add, copies included
constexpr size_t kIndexFrom = 32;        // members from which a hash pays

size_t depth_of(const json::Value& v) {
  size_t deepest = 0;
  if (v.is_array())
    for (const json::Value& item : v.items()) deepest = std::max(deepest, depth_of(item));
  else if (v.is_object())
    for (const json::Member& m : v.members()) deepest = std::max(deepest, depth_of(m.value));
  else
    return 0;
  return deepest + 1;
}

size_t bytes_of(const json::Value& v) {
  size_t n = sizeof(json::Value);
  if (v.is_string()) n += v.as_string().size();
  if (v.is_array())
    for (const json::Value& item : v.items()) n += bytes_of(item);
  if (v.is_object())
    for (const json::Member& m : v.members()) n += m.key.size() + bytes_of(m.value);
  return n;
}

[[noreturn]] void fail(const std::string& why) { throw Error(Code::invalid, why); }

std::vector<std::string> pointer(const std::string& text) {
  std::vector<std::string> tokens;
  if (text.empty()) return tokens;
  if (text.front() != '/') fail("path " + json::quote(text.substr(0, 200)) + " must begin with /");
  for (size_t at = 1;;) {
    const size_t end = std::min(text.find('/', at), text.size());
    std::string token;
    for (size_t i = at; i < end; ++i) {
      if (text[i] == '~' && i + 1 < end && (text[i + 1] == '0' || text[i + 1] == '1'))
        token += text[++i] == '0' ? '~' : '/';
      else if (text[i] == '~')
        fail("path " + json::quote(text.substr(0, 200)) + " has a stray ~");
      else
        token += text[i];
    }
    tokens.push_back(std::move(token));
    if (end == text.size()) return tokens;
    at = end + 1;
  }
}

size_t index_in(const std::string& token, size_t size, bool may_append) {
  if (may_append && token == "-") return size;
  size_t n = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), n);
  const bool leading_zero = token.size() > 1 && token.front() == '0';
  if (token.empty() || leading_zero || error != std::errc() || end != token.data() + token.size())
    fail(json::quote(token.substr(0, 100)) + " is not an array index");
  if (n > size || (n == size && !may_append))
    fail("array index " + token + " is out of bounds, the array has " + std::to_string(size) +
         " items");
  return n;
}

// Applies operations to a copy; the caller takes it when all went well.
class JsonPatch {
 public:
  explicit JsonPatch(json::Value document) : document_(std::move(document)) {}

  void apply(const json::Value& operation) {
    if (!operation.is_object())
      fail(std::string("is ") + operation.type_name() + ", not an object");
    const std::string op = text(operation, "op");
    const auto path = pointer(text(operation, "path"));
    if (op == "add") return add(path, value(operation));
    if (op == "remove") return static_cast<void>(remove(path));
    if (op == "replace") {
      json::Value replacement = value(operation);
      account(path, replacement);
      at(path) = std::move(replacement);
      return;
    }
    if (op == "test") {
      if (!(at(path) == value(operation)))
        fail("test failed: the value at " + json::quote(text(operation, "path").substr(0, 200)) +
             " is another");
      return;
    }
    if (op == "copy") return add(path, json::Value(at(pointer(text(operation, "from")))));
    if (op == "move") return move(pointer(text(operation, "from")), path);
    fail("unknown op " + json::quote(op.substr(0, 100)));
  }

  json::Value take() { return std::move(document_); }

 private:
  static std::string text(const json::Value& operation, std::string_view key) {
    const json::Value* v = operation.find(key);
    if (!v || !v->is_string()) fail(std::string(key) + ": a string is required");
    return v->as_string();
  }
  static const json::Value& value(const json::Value& operation) {
    const json::Value* v = operation.find("value");
    if (!v) fail("value: is required");
    return *v;
  }

  void account(const std::vector<std::string>& path, const json::Value& value) {
    if (path.size() + depth_of(value) > kMaxDepth)
      fail("the result would be nested deeper than " + std::to_string(kMaxDepth) + " levels");
    added_ += bytes_of(value);
    if (added_ > kMaxAdded)
      fail("the patch would add more than " + std::to_string(kMaxAdded) + " bytes");
  }

  json::Value& child(json::Value& parent, const std::string& token) {
    if (parent.is_array()) return parent.items()[index_in(token, parent.size(), false)];
    json::Value* v = parent.find(token);
    if (!v) fail("there is no " + json::quote(token.substr(0, 100)));
    return *v;
  }

  json::Value& at(const std::vector<std::string>& path, size_t leave_out = 0) {
    json::Value* v = &document_;
    for (size_t i = 0; i + leave_out < path.size(); ++i) v = &child(*v, path[i]);
    return *v;
  }

  void add(const std::vector<std::string>& path, json::Value value) {
    account(path, value);
    if (path.empty()) {
      document_ = std::move(value);
      return;
    }
    json::Value& parent = at(path, 1);
    if (parent.is_array()) {
      const size_t i = index_in(path.back(), parent.size(), true);
      parent.items().insert(parent.items().begin() + static_cast<std::ptrdiff_t>(i),
                            std::move(value));
    } else if (parent.is_object()) {
      parent.set(path.back(), std::move(value));
    } else {
      fail(std::string("cannot add to ") + parent.type_name());
    }
  }

  json::Value remove(const std::vector<std::string>& path) {
    if (path.empty()) fail("the whole document cannot be removed");
    json::Value& parent = at(path, 1);
    json::Value removed = std::move(child(parent, path.back()));
    if (parent.is_array())
      parent.items().erase(parent.items().begin() + static_cast<std::ptrdiff_t>(index_in(
                                                        path.back(), parent.size(), false)));
    else
      parent.erase(path.back());
    return removed;
  }

  void move(const std::vector<std::string>& from, const std::vector<std::string>& path) {
    if (from == path) return static_cast<void>(at(from));
    if (path.size() > from.size() && std::equal(from.begin(), from.end(), path.begin()))
      fail("a value cannot be moved into itself");
    add(path, remove(from));
  }

  json::Value document_;
  size_t added_ = 0;
};

}  // namespace

void merge_patch(json::Value& target, const json::Value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = json::Value::object();
  std::unordered_map<std::string_view, size_t> index;
  const bool many = patch.size() > kIndexFrom && target.size() > kIndexFrom;
  if (many)
    for (size_t i = 0; i < target.size(); ++i) index.emplace(target.members()[i].key, i);
  const size_t before = target.size();
  std::vector<bool> removed(before, false);
  json::Object added;
  for (const json::Member& m : patch.members()) {
    size_t i = before;
    if (many) {
      if (const auto found = index.find(m.key); found != index.end()) i = found->second;
    } else {
      for (i = 0; i < before && target.members()[i].key != m.key; ++i) continue;
    }
    if (i < before) {
      if (m.value.is_null())
        removed[i] = true;
      else
        merge_patch(target.members()[i].value, m.value);
    } else if (!m.value.is_null()) {
      added.push_back({m.key, json::Value()});
      merge_patch(added.back().value, m.value);
    }
  }
  json::Object kept;
  kept.reserve(before + added.size());
  for (size_t i = 0; i < before; ++i)
    if (!removed[i]) kept.push_back(std::move(target.members()[i]));
  std::move(added.begin(), added.end(), std::back_inserter(kept));
  target.members() = std::move(kept);
}

void json_patch(json::Value& target, const json::Value& operations) {
  if (!operations.is_array())
    throw Error(Code::bad_request,
                std::string("a JSON patch must be an array of operations, found ") +
                    operations.type_name());
  if (operations.size() > kMaxOperations)
    throw Error(Code::too_large, "a JSON patch of " + std::to_string(operations.size()) +
                                     " operations: limit is " + std::to_string(kMaxOperations));
  JsonPatch patch(target);
  for (size_t i = 0; i < operations.size(); ++i) {
    try {
      patch.apply(operations.items()[i]);
    } catch (Error& e) {  // only to say which operation it was
      throw e.in("JSON patch operation " + std::to_string(i));
    }
  }
  target = patch.take();
}

}  // namespace umpteenth::apis
