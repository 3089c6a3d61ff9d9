// The shim's side of a running command: passes its output on, reaps, and knows when it is over.
#pragma once

#include <sys/types.h>

namespace umpteenth::ump {

// The signals forward_until_end() waits for: SIGCHLD, and those that ask the shim to end.
void block_shim_signals();
int setgroups_none();

class OutputPipes {
 public:
  OutputPipes() = default;
  OutputPipes(const OutputPipes&) = delete;
  OutputPipes& operator=(const OutputPipes&) = delete;
  ~OutputPipes();

  bool open();
  void become_stdout_and_stderr();  // in the child
  void close_write_ends();

  // Forwards until the command has ended, then what it left in the pipes, and for 500 ms what its
  // background processes still write. SIGTERM, SIGINT or SIGHUP of the shim end the command and all
  // it started. The exit code, 128+n where signal n ended the command.
  int forward_until_end(pid_t command);

 private:
  struct Stream {
    int read_end = -1, write_end = -1, to = -1;
    int left = 0;  // bytes in the pipe when the command ended
  };
  void forward(Stream& stream);
  void end_command(pid_t command);

  Stream streams_[2];
};

}  // namespace umpteenth::ump
