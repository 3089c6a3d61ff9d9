// Structured logs on stderr: a constant message and pairs. Never header values, environment
// values, secrets, command output or model text. Thread-safe.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace umpteenth::log {

enum class Level { debug, info, warn, error };

struct Field {
  std::string_view key;
  std::string value;
  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const std::string& v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(v) {}
  template <typename T>
    requires std::is_arithmetic_v<T>
  Field(std::string_view k, T v) : key(k), value(std::to_string(v)) {}
};
using Fields = std::initializer_list<Field>;

// level: debug | info | warn | error, else Error(bad_request) that names them.
void configure(std::string_view level, bool as_json);

void debug(std::string_view message, Fields fields = {});
void info(std::string_view message, Fields fields = {});
void warn(std::string_view message, Fields fields = {});
void error(std::string_view message, Fields fields = {});

// At most max characters of foreign text, control characters replaced: for the few places where a
// condition or log must quote what others said.
std::string clip(std::string_view foreign_text, size_t max = 200);

}  // namespace umpteenth::log
