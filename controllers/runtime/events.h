// core/v1 Events: what people see in `describe`. Same object, reason and message: one event whose
// count rises. Never throws: an event that cannot be written is a log line. Thread-safe.
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
  // For what happens to an object again and again, each time with another message: one event a
  // reason, with the newest message.
  void latest(const json::Value& object, std::string_view type, std::string_view reason,
              std::string_view message);

 private:
  struct Telling {
    std::string type, reason, message;
    bool one_a_reason = false;
  };
  void emit(const json::Value& object, const Telling& telling);
  void write(const store::Key& key, const json::Value& object, const Telling& telling);

  store::Store& store_;
  Clock& clock_;
  std::string component_;
};

}  // namespace umpteenth::controllers
