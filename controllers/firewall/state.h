// What is known of the egress firewall on an engine's host.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace umpteenth::controllers::firewall {

struct State {
  enum class Kind { not_enforced, enforced, off } kind = Kind::not_enforced;
  std::string reason = "it has not been checked yet";  // of not_enforced
  bool pending = true;  // not_enforced only until the first checks end
  std::string backend;  // nft | legacy, "" unknown
  std::string watch;    // events | polled
  Time last_checked{}, last_repaired{};
  int64_t repairs = 0;
  std::string last_repair;  // what was done, in words
  bool operator==(const State&) const = default;

  bool enforced() const { return kind == Kind::enforced; }
  bool off() const { return kind == Kind::off; }
};

}  // namespace umpteenth::controllers::firewall
