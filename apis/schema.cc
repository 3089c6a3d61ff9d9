#include "apis/schema.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>
#include <regex>
#include <shared_mutex>
#include <unordered_set>

#include "apis/formats.h"

namespace umpteenth::apis {
namespace {

constexpr size_t kMaxCauses = 100;    // a list of a million wrong items answers with these
constexpr size_t kMaxQuoted = 100;    // bytes of a value that a message repeats
constexpr size_t kMaxMatched = 4096;  // std::regex recurses once a character

bool preserves(const json::Value& schema) {
  return schema.get_bool("x-kubernetes-preserve-unknown-fields");
}

// Length in code points: continuation bytes do not count.
size_t characters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// The first control character other than line feed and tab, as `U+0000 at character 3`; "" where
// there is none. Of the C1 ones, too: terminals obey them.
std::string control_character(const std::string& text) {
  size_t at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c & 0xC0) != 0x80) ++at;
    const bool c1 =
        c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if ((c >= 0x20 || c == '\n' || c == '\t') && c != 0x7F && !c1) continue;
    char name[48];
    std::snprintf(name, sizeof name, "U+%04X at character %zu",
                  c1 ? static_cast<unsigned char>(text[i + 1]) : c, at);
    return name;
  }
  return "";
}

std::string shown(const json::Value& value) {
  if (!value.is_string()) {
    std::string text = value.is_array() || value.is_object() ? value.type_name() : value.dump();
    return text;
  }
  const std::string& text = value.as_string();
  if (text.size() <= kMaxQuoted) return json::quote(text);
  size_t n = kMaxQuoted;
  while (n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;
  return json::quote(text.substr(0, n) + "…");
}

const std::regex& compiled(const std::string& pattern) {
  static std::shared_mutex mutex;
  static std::map<std::string, std::regex, std::less<>> cache;
  {
    std::shared_lock lock(mutex);
    if (const auto found = cache.find(pattern); found != cache.end()) return found->second;
  }
  std::unique_lock lock(mutex);
  return cache.try_emplace(pattern, pattern, std::regex::ECMAScript | std::regex::optimize)
      .first->second;
}

bool has_type(const json::Value& value, const std::string& type) {
  if (type == "string") return value.is_string();
  if (type == "integer")
    return value.is_int() || (value.is_number() && std::fabs(value.as_double()) < 9e15 &&
                              std::trunc(value.as_double()) == value.as_double());
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_bool();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

class Validator {
 public:
  Validator(std::vector<Cause>& causes, bool plain_text)
      : causes_(causes), plain_text_(plain_text) {}

  void check(const json::Value& schema, const json::Value& value, const std::string& path) {
    if (causes_.size() >= kMaxCauses) return;
    if (value.is_null() && schema.get_bool("nullable")) return;
    if (const json::Value* type = schema.find("type"); type && !has_type(value, type->as_string()))
      return add(path, "FieldValueTypeInvalid",
                 "Invalid value: \"" + std::string(value.type_name()) + "\": " + path +
                     " in body must be of type " + type->as_string() + ": \"" + value.type_name() +
                     "\"");
    check_enum(schema, value, path);
    if (value.is_string()) check_string(schema, value, path);
    if (value.is_number()) check_number(schema, value, path);
    if (value.is_array()) check_array(schema, value, path);
    if (value.is_object()) check_object(schema, value, path);
  }

 private:
  void add(const std::string& path, const char* reason, std::string message) {
    if (causes_.size() < kMaxCauses) causes_.push_back({path, std::move(message), reason});
  }
  void invalid(const std::string& path, const json::Value& value, const std::string& rule) {
    add(path, "FieldValueInvalid",
        "Invalid value: " + shown(value) + ": " + path + " in body " + rule);
  }

  void check_enum(const json::Value& schema, const json::Value& value, const std::string& path) {
    const json::Value* allowed = schema.find("enum");
    if (!allowed) return;
    std::string names;
    for (const json::Value& a : allowed->items()) {
      if (a == value) return;
      names += (names.empty() ? "" : ", ") + a.dump();
    }
    add(path, "FieldValueNotSupported",
        "Unsupported value: " + shown(value) + ": supported values: " + names);
  }

  void check_string(const json::Value& schema, const json::Value& value, const std::string& path) {
    const std::string& text = value.as_string();
    if (const json::Value* max = schema.find("maxLength");
        max && text.size() > static_cast<size_t>(max->as_int()) &&
        characters(text) > static_cast<size_t>(max->as_int()))
      return add(path, "FieldValueTooLong",
                 "Too long: may not be more than " + max->dump() + " characters");
    if (const json::Value* min = schema.find("minLength");
        min && characters(text) < static_cast<size_t>(min->as_int()))
      return invalid(path, value, "should be at least " + min->dump() + " chars long");
    if (const std::string found = plain_text_ ? control_character(text) : ""; !found.empty())
      return invalid(path, value,
                     "must not contain control characters other than line feed and tab: " + found);
    if (const json::Value* pattern = schema.find("pattern");
        pattern &&
        (text.size() > kMaxMatched || !std::regex_search(text, compiled(pattern->as_string()))))
      invalid(path, value, "should match '" + pattern->as_string() + "'");
    // An empty optional string means "not given"; where it must be given minLength says so.
    if (const json::Value* format = schema.find("format");
        format && !text.empty() && !matches_format(format->as_string(), text))
      invalid(path, value, "must be " + std::string(format_rule(format->as_string())));
  }

  void check_number(const json::Value& schema, const json::Value& value, const std::string& path) {
    if (const json::Value* min = schema.find("minimum");
        min && value.as_double() < min->as_double())
      invalid(path, value, "should be greater than or equal to " + min->dump());
    if (const json::Value* max = schema.find("maximum");
        max && value.as_double() > max->as_double())
      invalid(path, value, "should be less than or equal to " + max->dump());
  }

  void check_array(const json::Value& schema, const json::Value& value, const std::string& path) {
    const size_t n = value.size();
    if (const json::Value* max = schema.find("maxItems");
        max && n > static_cast<size_t>(max->as_int()))
      return add(
          path, "FieldValueTooMany",
          "Too many: " + std::to_string(n) + ": must have at most " + max->dump() + " items");
    if (const json::Value* min = schema.find("minItems");
        min && n < static_cast<size_t>(min->as_int()))
      add(path, "FieldValueInvalid",
          "Invalid value: " + std::to_string(n) + ": " + path + " in body should have at least " +
              min->dump() + " items");
    if (const json::Value* items = schema.find("items"))
      for (size_t i = 0; i < n && causes_.size() < kMaxCauses; ++i)
        check(*items, value.items()[i], path + "[" + std::to_string(i) + "]");
    check_unique(schema, value, path);
  }

  // x-kubernetes-list-type set (whole items) and map (by x-kubernetes-list-map-keys).
  void check_unique(const json::Value& schema, const json::Value& value, const std::string& path) {
    const json::Value* type = schema.find("x-kubernetes-list-type");
    if (!type || value.size() < 2) return;
    const json::Value& keys = schema.get("x-kubernetes-list-map-keys");
    if (!keys.is_array() && type->as_string() != "set") return;
    std::unordered_set<std::string> seen;
    for (size_t i = 0; i < value.size(); ++i) {
      json::Value identity = value.items()[i];
      if (keys.is_array()) {
        identity = json::Value::object();
        for (const json::Value& key : keys.items())
          if (const json::Value* k = value.items()[i].find(key.as_string()))
            identity.set(key.as_string(), *k);
        if (identity.empty()) continue;
      }
      if (!seen.insert(identity.dump()).second)
        add(path + "[" + std::to_string(i) + "]", "FieldValueDuplicate",
            "Duplicate value: " + identity.dump());
    }
  }

  void check_object(const json::Value& schema, const json::Value& value, const std::string& path) {
    if (const json::Value* max = schema.find("maxProperties");
        max && value.size() > static_cast<size_t>(max->as_int()))
      return add(path, "FieldValueTooMany",
                 "Too many: " + std::to_string(value.size()) + ": must have at most " +
                     max->dump() + " items");
    if (const json::Value* required = schema.find("required"))
      for (const json::Value& name : required->items())
        if (!value.find(name.as_string()))
          add(join_path(path, name.as_string()), "FieldValueRequired", "Required value");
    const json::Value* properties = schema.find("properties");
    const json::Value* additional = schema.find("additionalProperties");
    if (!properties && !additional) return;
    for (const json::Member& m : value.members()) {
      if (causes_.size() >= kMaxCauses) return;
      const json::Value* sub = properties ? properties->find(m.key) : nullptr;
      if (!sub && additional && additional->is_object()) sub = additional;
      if (sub) check(*sub, m.value, join_path(path, m.key));
    }
  }

  std::vector<Cause>& causes_;
  const bool plain_text_;
};

}  // namespace

std::string join_path(const std::string& path, std::string_view key) {
  const bool plain = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return c == '_' || c == '-' || c == '$' || std::isalnum(static_cast<unsigned char>(c));
  });
  if (!plain) return path + "[" + std::string(key.substr(0, kMaxQuoted)) + "]";
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

void apply_defaults(const json::Value& schema, json::Value& value) {
  if (value.is_array()) {
    if (const json::Value* items = schema.find("items"))
      for (json::Value& item : value.items()) apply_defaults(*items, item);
    return;
  }
  if (!value.is_object()) return;
  if (const json::Value* properties = schema.find("properties")) {
    for (const json::Member& p : properties->members()) {
      json::Value* present = value.find(p.key);
      if (present && present->is_null() && !p.value.get_bool("nullable")) {
        value.erase(p.key);  // as Kubernetes: a null that may not be one means "not given"
        present = nullptr;
      }
      if (!present)
        if (const json::Value* otherwise = p.value.find("default"))
          present = &value.set(p.key, *otherwise);
      if (present) apply_defaults(p.value, *present);
    }
  }
  if (const json::Value* additional = schema.find("additionalProperties"))
    for (json::Member& m : value.members()) apply_defaults(*additional, m.value);
}

std::vector<std::string> prune_unknown(const json::Value& schema, json::Value& value,
                                       const std::string& path) {
  std::vector<std::string> removed;
  const auto into = [&](const json::Value& sub, json::Value& v, const std::string& where) {
    std::vector<std::string> more = prune_unknown(sub, v, where);
    removed.insert(removed.end(), more.begin(), more.end());
  };
  if (value.is_array()) {
    if (const json::Value* items = schema.find("items"))
      for (size_t i = 0; i < value.size(); ++i) {
        json::Value& item = value.items()[i];
        if (item.is_object() || item.is_array())
          into(*items, item, path + "[" + std::to_string(i) + "]");
      }
    return removed;
  }
  if (!value.is_object()) return removed;
  const json::Value* properties = schema.find("properties");
  const json::Value* additional = schema.find("additionalProperties");
  const bool keep = preserves(schema) || additional || schema.get("type").is_null();
  std::erase_if(value.members(), [&](json::Member& m) {
    const json::Value* sub = properties ? properties->find(m.key) : nullptr;
    if (!sub && additional && additional->is_object()) sub = additional;
    if (sub) {
      if (m.value.is_object() || m.value.is_array()) into(*sub, m.value, join_path(path, m.key));
      return false;
    }
    if (keep) return false;
    removed.push_back(join_path(path, m.key));
    return true;
  });
  return removed;
}

void validate(const json::Value& schema, const json::Value& value, const std::string& path,
              std::vector<Cause>& causes) {
  // A status repeats what sandboxes and models said, as it came.
  Validator(causes, !path.starts_with("status")).check(schema, value, path);
}

}  // namespace umpteenth::apis
