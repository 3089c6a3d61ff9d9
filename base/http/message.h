// Requests and responses as plain data, shared by server and client. No Boost in here.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace umpteenth::http {

// Field names compare without case; order and repeats are kept.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}
  void add(std::string name, std::string value);
  void set(std::string name, std::string value);      // replaces all of that name
  std::string_view get(std::string_view name) const;  // the first, "" where absent
  bool has(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct Endpoint {       // one end of a connection
  std::string address;  // literal IP, "" for a Unix socket
  int port = 0;
};

struct Request {
  std::string method;
  std::string target;  // as sent: path?query
  std::string path;    // percent-decoded; a target that decodes to a NUL or a %2F is refused before
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
  Headers headers;
  std::string body;
  Endpoint peer;
  Endpoint local;  // as PROXY v2 gave it where the listener speaks that
  bool tls = false;

  std::string_view param(std::string_view name) const;  // first value, "" where absent
  bool has_param(std::string_view name) const;
  std::string cookie(std::string_view name) const;
};

// Bytes a handler sends after it has returned: watch, follow, downloads. Thread-safe; the server
// drains it on its io thread. Bounded: a slow client makes push fail, never the process grow.
class Stream {
 public:
  explicit Stream(size_t max_queued_bytes = 1U << 20);
  // False when the client is gone, the stream was closed, or the bound would be passed; in the last
  // case overflowed() is true and the connection is cut without a final chunk.
  bool push(std::string bytes);
  // Blocks while the queue is full (for downloads on a worker thread); false when closed.
  bool push_wait(std::string bytes);
  void close();  // ends the body properly once all is sent
  void abort();  // cuts the connection without a final chunk
  bool closed() const;
  bool overflowed() const;
  // Called once when the client went away or the body has ended; at once if it already has.
  void on_end(std::function<void()> f);

  // For the server: what is queued now, and how to be told of more.
  struct Drain {
    std::vector<std::string> chunks;
    bool ended = false;
    bool aborted = false;
  };
  Drain drain();
  // Called with the stream's lock held, so that after on_readable(nullptr) no call is under way.
  void on_readable(std::function<void()> f);
  void peer_gone();  // also when the body has been sent whole

 private:
  struct State;
  std::shared_ptr<State> state_;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
  std::shared_ptr<Stream> stream;  // where set: chunked, `body` goes first

  static Response text(int status, std::string body);
  static Response json(int status, std::string body);
};

std::string percent_decode(std::string_view text, bool plus_is_space);
std::string percent_encode(std::string_view text);
std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query);

}  // namespace umpteenth::http
