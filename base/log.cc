#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdio>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

namespace umpteenth::log {
namespace {

std::atomic<bool> g_json{false};

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = spdlog::stderr_color_mt("umpteenth");
    made->set_pattern("%v");
    return made;
  }();
  return *instance;
}

bool plain(std::string_view text) {
  for (char c : text)
    if (c == ' ' || c == '"' || c == '=' || static_cast<unsigned char>(c) < 0x20) return false;
  return !text.empty();
}

void write(spdlog::level::level_enum level, std::string_view name, std::string_view message,
           Fields fields) {
  if (!logger().should_log(level)) return;
  const std::string time = format_time_ms(system_clock().now());
  if (g_json) {
    json::Value line = json::Value::object({{"time", time}, {"level", name}, {"msg", message}});
    for (const Field& f : fields) line.set(f.key, f.value);
    logger().log(level, "{}", line.dump());
    return;
  }
  std::string line = time + " " + std::string(name) + " " + std::string(message);
  for (const Field& f : fields) {
    line += ' ';
    line += f.key;
    line += '=';
    line += plain(f.value) ? f.value : json::quote(f.value);
  }
  logger().log(level, "{}", line);
}

}  // namespace

void configure(std::string_view level, bool as_json) {
  if (level == "debug")
    logger().set_level(spdlog::level::debug);
  else if (level == "info")
    logger().set_level(spdlog::level::info);
  else if (level == "warn")
    logger().set_level(spdlog::level::warn);
  else if (level == "error")
    logger().set_level(spdlog::level::err);
  else
    throw Error(Code::bad_request, "unknown log.level (LOG_LEVEL) " + json::quote(level) +
                                       ", use debug, info, warn or error");
  g_json = as_json;
}

void debug(std::string_view m, Fields f) { write(spdlog::level::debug, "debug", m, f); }
void info(std::string_view m, Fields f) { write(spdlog::level::info, "info", m, f); }
void warn(std::string_view m, Fields f) { write(spdlog::level::warn, "warn", m, f); }
void error(std::string_view m, Fields f) { write(spdlog::level::err, "error", m, f); }

std::string clip(std::string_view foreign_text, size_t max) {
  const bool cut = foreign_text.size() > max;
  std::string text(foreign_text.substr(0, max));
  while (cut && !text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80)
    text.pop_back();  // not half a UTF-8 character
  if (cut && !text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0) text.pop_back();
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return cut ? text + "…" : text;
}

}  // namespace umpteenth::log
