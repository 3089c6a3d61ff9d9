// One question to the upstream resolvers: by UDP, to the next one when there is no answer, by TCP
// when the answer was cut. Never blocks; the owner polls fd() for events() and calls step().
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "broker/dns/message.h"

namespace umpteenth::broker::dns {

class Lookup {
 public:
  using Clock = std::chrono::steady_clock;
  struct Timing {
    std::chrono::milliseconds each{2'000}, all{5'000};
  };

  Lookup(Question question, std::vector<sockaddr_in> upstreams, Timing timing,
         Clock::time_point now);

  int fd() const { return fd_.get(); }
  short events() const { return events_; }
  Clock::time_point deadline() const;
  // True when it is over: there is an answer, or there will be none.
  bool step(Clock::time_point now);
  const std::optional<Answer>& answer() const { return answer_; }

 private:
  void next(Clock::time_point now);
  bool ask_by_udp();
  bool ask_by_tcp();
  bool take(std::string_view message);
  bool step_tcp();

  const Question question_;
  const std::vector<sockaddr_in> upstreams_;
  const Timing timing_;
  const Clock::time_point begun_;
  Clock::time_point asked_;
  size_t at_ = 0;  // which upstream; one past the last: no more
  Fd fd_;
  short events_ = 0;
  bool tcp_ = false;
  uint16_t id_ = 0;
  std::string out_, in_;
  std::optional<Answer> answer_;
};

}  // namespace umpteenth::broker::dns
