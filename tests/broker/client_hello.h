// TLS ClientHellos made by hand.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace umpteenth::test {

inline std::string sized(std::string_view bytes, int width) {
  std::string out;
  for (int i = width - 1; i >= 0; --i) out += static_cast<char>(bytes.size() >> (8 * i) & 0xff);
  return out.append(bytes);
}

inline std::string name_extension(std::string_view name) {
  return std::string(2, '\0') + sized(sized(std::string(1, '\0') + sized(name, 2), 2), 2);
}

// The handshake message. A second name makes it one that no server may take.
inline std::string client_hello(std::string_view name, std::string_view second = {}) {
  std::string extensions = std::string("\x00\x17", 2) + sized("", 2);  // another one first
  if (!name.empty()) extensions += name_extension(name);
  if (!second.empty()) extensions += name_extension(second);
  const std::string body = "\x03\x03" + std::string(32, 'r') + sized(std::string(32, 's'), 1) +
                           sized("\x13\x01\x13\x02", 2) + sized(std::string(1, '\0'), 1) +
                           sized(extensions, 2);
  return "\x01" + sized(body, 3);
}

// In records of at most so many bytes.
inline std::string records(std::string_view message, size_t each = 16384) {
  std::string out;
  while (!message.empty()) {
    const std::string_view part = message.substr(0, std::min(each, message.size()));
    out += "\x16\x03\x01" + sized(part, 2);
    message.remove_prefix(part.size());
  }
  return out;
}

}  // namespace umpteenth::test
