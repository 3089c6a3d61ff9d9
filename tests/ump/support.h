// Running the built `ump` from tests.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/subprocess.h"
#include "tests/support/paths.h"

namespace umpteenth {

inline std::string ump_path() { return support::bin_dir() + "/ump"; }

// Polls until the condition holds; false when it does not within the deadline.
inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds within = std::chrono::seconds(10)) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

inline CommandResult run_program(std::vector<std::string> argv) {
  Command command;
  command.argv = std::move(argv);
  return system_runner().run(command);
}

inline CommandResult ump(std::vector<std::string> arguments, std::string stdin_bytes = {},
                         std::vector<std::string> env = {"PATH=/usr/bin:/bin"}) {
  Command command;
  command.argv = {ump_path()};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.stdin_bytes = std::move(stdin_bytes);
  command.env = std::move(env);
  return system_runner().run(command);
}

// A child that goes on running beside the test; killed with the object.
class Background {
 public:
  explicit Background(std::vector<std::string> argv, bool own_stderr = false) {
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0) abort();
    std::vector<char*> pointers;
    for (std::string& a : argv) pointers.push_back(a.data());
    pointers.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], own_stderr ? STDERR_FILENO : STDOUT_FILENO);
      execv(pointers[0], pointers.data());
      _exit(99);
    }
    close(out[1]);
    out_ = Fd(out[0]);
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  // 128+n for signal n; -1 where it has not ended within the time.
  int wait(std::chrono::milliseconds within = std::chrono::seconds(10)) {
    int status = 0;
    if (!eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, within)) return -1;
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  std::string read_line() {
    std::string line;
    char c = 0;
    while (read(out_.get(), &c, 1) == 1 && c != '\n') line += c;
    return line;
  }
  std::string read_rest() {
    std::string text;
    char bytes[4096];
    for (ssize_t n = 0; (n = read(out_.get(), bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<size_t>(n));
    return text;
  }

 private:
  pid_t pid_ = -1;
  Fd out_;
};

inline bool lives(pid_t pid) {
  try {
    const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    const char state = stat[stat.rfind(')') + 2];
    return state != 'Z' && state != 'X';
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace umpteenth
