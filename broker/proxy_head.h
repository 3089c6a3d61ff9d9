// Heads of HTTP requests to the egress proxy and of the answers that come back. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace umpteenth::broker {

inline constexpr size_t kMaxProxyHead = 8U << 10;
inline constexpr size_t kMaxProxyFields = 64;
inline constexpr size_t kMaxAnswerHead = 64U << 10;

// Whose a connection is, by its first bytes.
enum class Speaks { need_more, socks5, proxy, broker_api };
Speaks first_bytes(std::string_view bytes);

// How long a body is. Follows it, so that not a byte behind it is taken for part of it.
class BodyFrame {
 public:
  static BodyFrame length(uint64_t bytes);
  static BodyFrame chunked();
  // How many of the bytes belong to the body; nullopt where its chunks are malformed.
  std::optional<size_t> take(std::string_view bytes);
  bool done() const { return done_; }

 private:
  enum class At { size, extension, size_end, data, data_cr, data_lf, last_cr, last_lf };
  bool step(char c);

  bool chunked_ = false, done_ = true;
  uint64_t left_ = 0;
  At at_ = At::size;
  size_t digits_ = 0, line_ = 0;
};

struct ProxyHead {
  enum class State { need_more, complete };
  State state = State::need_more;
  size_t size = 0;
  int refusal_status = 0;  // not 0: what to answer at once; the rest is then not filled in
  std::string refusal;

  bool connect = false;
  std::string host;  // as sent
  int port = 0;
  std::string password;      // of Proxy-Authorization, "" where there is none of use
  std::string host_problem;  // the Host field names another host: refused after the credentials

  // Of an absolute-form request: what goes to the server, without the fields that are ours or hold
  // for one hop only.
  std::string forward;
  BodyFrame body;
};
ProxyHead parse_proxy_head(std::string_view bytes);

// A server's answer head, with its fields for one hop replaced by "Connection: close".
struct AnswerHead {
  enum class State { need_more, bad, complete };
  State state = State::need_more;
  size_t size = 0;
  bool interim = false;  // 1xx: another head follows
  std::string forward;
};
AnswerHead parse_answer_head(std::string_view bytes);

// A whole refusal; the connection closes behind it.
std::string proxy_refusal(int status, std::string_view text);

}  // namespace umpteenth::broker
