// umpctl: the command line for people.
#include <csignal>
#include <iostream>

#include "base/error.h"
#include "base/nearest.h"
#include "client/printable.h"
#include "cmd/umpctl/command.h"

namespace umpteenth::umpctl {
namespace {

// kubectl's words for commands that umpctl leaves to it.
constexpr std::string_view kKubectlOnly[] = {
    "exec",   "cp",           "port-forward", "attach",  "debug",     "proxy",
    "scale",  "rollout",      "set",          "expose",  "autoscale", "kustomize",
    "plugin", "certificate",  "taint",        "drain",   "edit",      "explain",
    "config", "cluster-info", "api-versions", "options", "top"};

std::string reason_of(const Error& e) {
  const std::string_view reason = status_reason(e.code());
  return reason.empty() ? "error: " : "Error from server (" + std::string(reason) + "): ";
}

int unknown_command(const std::string& name) {
  for (std::string_view word : kKubectlOnly)
    if (word == name) {
      std::cerr << "error: umpctl has no " << name << ": use kubectl for this\n";
      return kUsage;
    }
  std::vector<std::string> names;
  std::string longer;  // auth → auth can-i, auth whoami
  for (const Command& c : commands()) {
    names.push_back(c.name);
    if (c.name.starts_with(name + " ")) longer += (longer.empty() ? "" : ", ") + c.name;
  }
  if (!longer.empty()) {
    std::cerr << "error: " << name << " needs a second word: " << longer << "\n";
    return kUsage;
  }
  std::cerr << "error: unknown command \"" << name << "\"" << did_you_mean(name, names)
            << (nearest(name, names).empty() ? "; see 'umpctl help'" : "") << "\n";
  return kUsage;
}

int main_of(std::vector<std::string> words) {
  if (words.empty() || words[0] == "help" || words[0] == "--help" || words[0] == "-h") {
    if (words.size() > 1) {
      const Command* c = words.size() > 2 ? find_command(words[1] + " " + words[2]) : nullptr;
      if (c || (c = find_command(words[1]))) {
        std::cout << help_of(*c);
        return kOk;
      }
      return unknown_command(words[1]);
    }
    std::cout << help_text();
    return words.empty() ? kUsage : kOk;
  }
  if (words[0] == "--version") words = {"version", "--client"};
  // Global flags may stand before the command.
  std::vector<std::string> before;
  while (!words.empty() && words[0].starts_with("-")) {
    const bool takes_value = words[0].find('=') == std::string::npos && words.size() > 1;
    before.push_back(words[0]);
    words.erase(words.begin());
    if (takes_value && before.back() != "--warnings-as-errors") {
      before.push_back(words[0]);
      words.erase(words.begin());
    }
  }
  if (words.empty()) {
    std::cerr << "error: no command is given; see 'umpctl help'\n";
    return kUsage;
  }
  std::string name = words[0];
  size_t used = 1;
  if (words.size() > 1 && find_command(name + " " + words[1])) {
    name += " " + words[1];
    used = 2;
  }
  const Command* command = find_command(name);
  if (!command) return unknown_command(name);
  words.erase(words.begin(), words.begin() + static_cast<long>(used));
  words.insert(words.begin(), before.begin(), before.end());
  const bool diff = command->name == "diff";
  try {
    Invocation line = parse(*command, words);
    if (line.on("help")) {
      std::cout << help_of(*command);
      return kOk;
    }
    const int rc = command->run(line);
    std::cout.flush();
    return rc;
  } catch (const client::ServerError& e) {
    std::cout.flush();
    std::cerr << reason_of(e) << client::printable(e.message()) << "\n";
    return diff ? kUsage : kError;
  } catch (const Error& e) {
    std::cout.flush();
    std::cerr << "error: " << client::printable(e.message()) << "\n";
    return diff || e.code() == Code::bad_request ? kUsage : kError;
  }
}

}  // namespace
}  // namespace umpteenth::umpctl

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);
  std::ios::sync_with_stdio(false);
  try {
    return umpteenth::umpctl::main_of({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << "\n";
    return umpteenth::umpctl::kError;
  }
}
