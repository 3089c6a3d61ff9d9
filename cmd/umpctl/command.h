// umpctl's commands as data: the parser, the help, docs/umpctl.md and completion come from it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"

namespace umpteenth::umpctl {

struct Flag {
  std::string name;   // without dashes
  char letter = 0;    // short form, 0 = none
  std::string value;  // placeholder of its value, "" = a switch
  std::string help;
  std::string fallback = {};
  std::string bare = {};  // what a value flag means when given without one (--dry-run)
};

class Invocation {  // the parsed line
 public:
  bool on(std::string_view flag) const;  // a switch, or =true/false
  std::string get(std::string_view flag) const;
  std::vector<std::string> all(std::string_view flag) const;
  bool given(std::string_view flag) const;
  int64_t integer(std::string_view flag) const;       // Error(bad_request) names flag and value
  int64_t milliseconds(std::string_view flag) const;  // 30s, 5m, 1h30m; plain numbers are seconds

  std::vector<std::string> arguments;
  std::multimap<std::string, std::string, std::less<>> values;

  client::Client& client();
  std::string ns();
  client::ConnectionFlags connection_flags() const;

 private:
  std::unique_ptr<client::Client> client_;
};

struct Command {
  std::string name;       // may have two words: "auth can-i"
  std::string arguments;  // as in the usage line
  std::string summary;
  std::string detail;  // examples and what to know
  std::vector<Flag> flags;
  std::function<int(Invocation&)> run;
};

const std::vector<Command>& commands();
const std::vector<Flag>& global_flags();
const Command* find_command(std::string_view name);

// Error(bad_request) for unknown commands and flags, with the nearest name. The words after the
// command's name.
Invocation parse(const Command& command, const std::vector<std::string>& words);

std::string help_text();
std::string help_of(const Command& command);
std::string commands_markdown();

// One function a file that adds its commands to the table.
void add_apply_commands(std::vector<Command>& table);
void add_get_commands(std::vector<Command>& table);
void add_run_commands(std::vector<Command>& table);
void add_history_commands(std::vector<Command>& table);
void add_change_commands(std::vector<Command>& table);
void add_engine_commands(std::vector<Command>& table);
void add_info_commands(std::vector<Command>& table);
void add_seal_command(std::vector<Command>& table);

// Exit codes. diff has its own: 0 none, 1 differences, 2 and up an error.
inline constexpr int kOk = 0, kError = 1, kUsage = 2;

}  // namespace umpteenth::umpctl
