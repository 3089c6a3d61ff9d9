#include "broker/socks5.h"

#include <algorithm>

#include "base/net/address.h"

namespace umpteenth::broker::socks5 {
namespace {

constexpr uint8_t kVersion = 5;
constexpr uint8_t kLoginVersion = 1;
constexpr char kPasswordMethod = 2;

uint8_t byte(std::string_view s, size_t at) { return static_cast<uint8_t>(s[at]); }

std::string address_text(std::string_view bytes) {
  net::Address address;
  if (bytes.size() == 4) address.bytes[10] = address.bytes[11] = 0xff;
  std::copy(bytes.begin(), bytes.end(), address.bytes.end() - static_cast<long>(bytes.size()));
  return net::format(address);
}

}  // namespace

Greeting parse_greeting(std::string_view bytes) {
  if (!bytes.empty() && byte(bytes, 0) != kVersion) return {.state = State::bad};
  if (bytes.size() < 2) return {};
  const size_t methods = byte(bytes, 1);
  if (methods == 0) return {.state = State::bad};
  if (bytes.size() < 2 + methods) return {};
  const bool offered = bytes.substr(2, methods).find(kPasswordMethod) != std::string_view::npos;
  return {.state = State::complete, .size = 2 + methods, .offers_password = offered};
}

Login parse_login(std::string_view bytes) {
  if (!bytes.empty() && byte(bytes, 0) != kLoginVersion)
    return {.state = State::bad, .password = {}};
  if (bytes.size() < 2) return {};
  const size_t user = byte(bytes, 1);
  if (bytes.size() < 3 + user) return {};
  const size_t password = byte(bytes, 2 + user);
  if (bytes.size() < 3 + user + password) return {};
  return {.state = State::complete,
          .size = 3 + user + password,
          .password = std::string(bytes.substr(3 + user, password))};
}

Request parse_request(std::string_view bytes) {
  constexpr size_t kFixed = 4;
  Request bad;
  bad.state = State::bad;
  if (!bytes.empty() && byte(bytes, 0) != kVersion) return bad;
  if (bytes.size() < kFixed + 1) return {};
  size_t begin = kFixed, length = 0;
  switch (byte(bytes, 3)) {
    case 1:
      length = 4;
      break;
    case 3:
      length = byte(bytes, kFixed);
      begin = kFixed + 1;
      if (length == 0) return bad;
      break;
    case 4:
      length = 16;
      break;
    default:
      return bad;
  }
  if (bytes.size() < begin + length + 2) return {};
  const std::string_view host = bytes.substr(begin, length);
  Request request;
  request.state = State::complete;
  request.size = begin + length + 2;
  request.connect = byte(bytes, 1) == 1;
  request.host = byte(bytes, 3) == 3 ? std::string(host) : address_text(host);
  request.port = byte(bytes, begin + length) << 8 | byte(bytes, begin + length + 1);
  return request;
}

std::string method_reply(bool accepted) { return {'\x05', accepted ? kPasswordMethod : '\xff'}; }

std::string login_reply(bool accepted) { return {'\x01', accepted ? '\x00' : '\x01'}; }

// The bound address is of no use to a client, so that it is 0.0.0.0:0.
std::string request_reply(Reply reply) {
  return std::string("\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00", 10)
      .replace(1, 1, 1, static_cast<char>(reply));
}

}  // namespace umpteenth::broker::socks5
