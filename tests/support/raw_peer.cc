#include "tests/support/raw_peer.h"

#include <array>

#include "base/error.h"

namespace umpteenth::test {
namespace {

constexpr std::chrono::seconds kPatience{5};

}  // namespace

RawPeer::RawPeer(int port) {
  wire_->connect({.unix_path = "", .host = "127.0.0.1", .port = port},
                 http::deadline_in(kPatience));
}

RawPeer::RawPeer(const std::string& unix_path) {
  wire_->connect({.unix_path = unix_path, .host = "", .port = 0}, http::deadline_in(kPatience));
}

void RawPeer::send(std::string_view bytes) { wire_->write(bytes, http::deadline_in(kPatience)); }

bool RawPeer::more() {
  std::array<char, 65536> buffer;
  const size_t n = wire_->read(buffer.data(), buffer.size(), http::deadline_in(kPatience));
  came_.append(buffer.data(), n);
  return n > 0;
}

std::string RawPeer::read_until(std::string_view marker) {
  size_t at = 0;
  while ((at = came_.find(marker)) == std::string::npos)
    if (!more()) throw Error(Code::unavailable, "the connection ended after: " + came_);
  const std::string part = came_.substr(0, at + marker.size());
  came_.erase(0, part.size());
  return part;
}

std::string RawPeer::read_response() {
  std::string text = read_until("\r\n\r\n");
  const size_t field = text.find("Content-Length: ");
  if (field == std::string::npos) return text;
  const size_t size = std::stoul(text.substr(field + 16));
  while (came_.size() < size)
    if (!more()) throw Error(Code::unavailable, "the connection ended in a body");
  text += came_.substr(0, size);
  came_.erase(0, size);
  return text;
}

std::string RawPeer::read_all() {
  while (more()) {
  }
  return std::exchange(came_, {});
}

bool RawPeer::ended() {
  try {
    while (more()) {
    }
    return true;
  } catch (const Error& e) {
    return e.code() == Code::unavailable;
  }
}

}  // namespace umpteenth::test
