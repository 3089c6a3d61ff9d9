// What a SOCKS5 client says (RFC 1928, 1929), of which only user/password and CONNECT are served.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace umpteenth::broker::socks5 {

enum class State { need_more, bad, complete };

enum class Reply : uint8_t {
  granted = 0,
  failure = 1,
  not_allowed = 2,
  unreachable = 4,
  refused = 5,
  command = 7,
};

struct Greeting {
  State state = State::need_more;
  size_t size = 0;
  bool offers_password = false;
};

struct Login {
  State state = State::need_more;
  size_t size = 0;
  std::string password;  // the user's name says nothing here
};

struct Request {
  State state = State::need_more;
  size_t size = 0;
  bool connect = false;
  std::string host;  // a literal address as text, IPv6 without brackets
  int port = 0;
};

// bytes: what came so far; size says how many of them belong to it, where complete.
Greeting parse_greeting(std::string_view bytes);
Login parse_login(std::string_view bytes);
Request parse_request(std::string_view bytes);

std::string method_reply(bool accepted);
std::string login_reply(bool accepted);
std::string request_reply(Reply reply);

}  // namespace umpteenth::broker::socks5
