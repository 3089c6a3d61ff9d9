// core/v1 Events: what people see in `describe`. Same object, reason and message: one event whose
// count rises. Never throws: an event that cannot be written is a log line.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "store/store.h"

namespace umpteenth::controllers {

class Events {
 public:
  Events(store::Store& store, Clock& clock, std::string component)
      : store_(store), clock_(clock), component_(std::move(component)) {}

  void normal(const json::Value& object, std::string_view reason, std::string_view message);
  void warning(const json::Value& object, std::string_view reason, std::string_view message);

 private:
  void emit(const json::Value& object, std::string_view type, std::string_view reason,
            std::string_view message);

  store::Store& store_;
  Clock& clock_;
  std::string component_;
};

}  // namespace umpteenth::controllers
