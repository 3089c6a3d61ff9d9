// A connection that asks: a PROXY v2 header where it comes from the relay, then questions and
// answers with two bytes of length before each.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace umpteenth::broker::dns {

class Client {
 public:
  // endpoint "": a header says it.
  Client(Fd socket, std::string endpoint, std::chrono::steady_clock::time_point now);

  int fd() const { return socket_.get(); }
  short events() const;
  // False when it is over or broken.
  bool read(std::chrono::steady_clock::time_point now);
  bool write();
  // The next question that is there whole.
  std::optional<std::string> next_question();
  void answer(std::string_view message);
  const std::string& endpoint() const { return endpoint_; }
  bool datagram() const { return datagram_; }  // the relay got the question in one
  std::chrono::steady_clock::time_point heard() const { return heard_; }

 private:
  bool take_header();

  Fd socket_;
  std::string endpoint_, in_, out_;
  bool datagram_ = false;
  std::chrono::steady_clock::time_point heard_;
};

}  // namespace umpteenth::broker::dns
