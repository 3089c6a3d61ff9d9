// HTTP/1.1 messages from bytes, by Beast's parser, stricter than it. No I/O, no exceptions for what
// a peer sends. put() wants the unconsumed bytes again, with more behind them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/http/limits.h"
#include "base/http/message.h"

namespace umpteenth::http {

struct Refusal {
  int status = 400;
  std::string_view why;
};

class RequestParser {
 public:
  explicit RequestParser(const Limits& limits);
  ~RequestParser();

  // Looks for the end of the head in what came so far. 0 = more is needed. Refuses NUL, obs-fold,
  // bare CR and LF, too many fields, too many bytes, what cannot begin a request.
  size_t find_head(std::string_view bytes, std::optional<Refusal>& refusal);
  // The whole head as find_head() measured it. Fills all of Request but body and addresses.
  std::optional<Refusal> put_head(std::string_view head, Request& request);

  bool has_body() const;
  std::optional<uint64_t> content_length() const;
  bool keep_alive() const;
  bool http_1_0() const;

  void limit_body(size_t bytes);  // after the head, before put_body
  // Appends to body. The number of bytes consumed; 0 without a refusal = more is needed.
  size_t put_body(std::string_view bytes, std::string& body, std::optional<Refusal>& refusal);
  bool done() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  Limits limits_;
  size_t searched_ = 0;
};

class ResponseParser {
 public:
  ResponseParser(bool without_body, size_t max_body);
  ~ResponseParser();
  // Fills response(), appending to its body. The number of bytes consumed. Error(bad_gateway),
  // Error(too_large).
  size_t put(std::string_view bytes);
  void put_eof();  // Error(bad_gateway) where the message is not whole
  bool head_done() const;
  bool done() const;
  bool keep_alive() const;
  Response& response();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace umpteenth::http
