#include "broker/client_hello.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace umpteenth::broker {
namespace {

using State = ClientHello::State;

constexpr uint8_t kHandshakeRecord = 22;
constexpr uint8_t kClientHello = 1;
constexpr size_t kRecordHead = 5;
constexpr size_t kMessageHead = 4;
constexpr size_t kMaxRecord = 1U << 14;
constexpr size_t kServerName = 0;  // the extension, and the kind of name in it

// Reads from the front; once something is missing, everything is.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  size_t number(size_t width) {
    size_t value = 0;
    for (const char c : take(width)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  std::string_view take(size_t n) {
    if (n > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  std::string_view vector(size_t width) { return take(number(width)); }
  bool empty() const { return rest_.empty(); }
  bool failed() const { return failed_; }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

// nullopt: malformed. One name of the kind host_name is all that RFC 6066 allows.
std::optional<std::string> name_in(std::string_view extension) {
  Reader outer(extension);
  Reader list(outer.vector(2));
  if (outer.failed() || !outer.empty()) return std::nullopt;
  const size_t kind = list.number(1);
  std::string name(list.vector(2));
  if (list.failed() || !list.empty() || kind != kServerName || name.empty() ||
      name.find('\0') != std::string::npos)
    return std::nullopt;
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return name;
}

ClientHello parse_message(std::string_view body) {
  ClientHello hello{.state = State::bad, .server_name = {}};
  Reader reader(body);
  reader.take(2 + 32);  // legacy_version, random
  reader.vector(1);     // session id
  reader.vector(2);     // cipher suites
  reader.vector(1);     // compression methods
  if (reader.failed()) return hello;
  if (reader.empty()) return {.state = State::complete, .server_name = {}};  // no extensions
  Reader extensions(reader.vector(2));
  if (reader.failed() || !reader.empty()) return hello;
  bool named = false;
  std::string name;
  while (!extensions.empty()) {
    const size_t type = extensions.number(2);
    const std::string_view data = extensions.vector(2);
    if (extensions.failed()) return hello;
    if (type != kServerName) continue;
    const auto found = name_in(data);
    // Of two names a server may take the other one.
    if (!found || named) return hello;
    named = true;
    name = *found;
  }
  return {.state = State::complete, .server_name = std::move(name)};
}

}  // namespace

ClientHello parse_client_hello(std::string_view bytes) {
  const ClientHello bad{.state = State::bad, .server_name = {}};
  const ClientHello need_more{.state = State::need_more, .server_name = {}};
  if (bytes.empty()) return need_more;
  if (static_cast<uint8_t>(bytes[0]) != kHandshakeRecord) return {State::not_tls, {}};
  if (bytes.size() >= 2 && bytes[1] != 3) return {State::not_tls, {}};

  std::string message;
  for (size_t at = 0; at + kRecordHead <= bytes.size();) {
    Reader head(bytes.substr(at, kRecordHead));
    const size_t type = head.number(1);
    const size_t version = head.number(2);
    const size_t length = head.number(2);
    if (type != kHandshakeRecord || version >> 8 != 3 || length == 0 || length > kMaxRecord)
      return bad;
    const std::string_view part = bytes.substr(at + kRecordHead, length);
    message += part;
    at += kRecordHead + length;
    if (static_cast<uint8_t>(message[0]) != kClientHello && !part.empty()) return bad;
    if (message.size() >= kMessageHead) {
      Reader start(std::string_view(message).substr(1));
      const size_t size = start.number(3);
      if (size + kMessageHead > kMaxClientHello) return bad;
      if (message.size() >= kMessageHead + size)
        return parse_message(std::string_view(message).substr(kMessageHead, size));
    }
    if (part.size() < length) break;
  }
  return bytes.size() >= kMaxClientHello ? bad : need_more;
}

}  // namespace umpteenth::broker
