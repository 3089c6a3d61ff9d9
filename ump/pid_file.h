// The pid file through which one `ump exec` kills the command of another. It is created whole and
// exclusively, by a hard link, and never through a symbolic link that someone planted.
#pragma once

#include <sys/types.h>

namespace umpteenth::ump {

struct PidFile {
  enum class Content { command, cancelled, oom } content = Content::command;
  pid_t group = 0;               // the command's process group, its leader's pid
  pid_t shim = 0;                // whose descendants the command's processes are
  unsigned long long start = 0;  // of the leader, in ticks since boot: tells a reused pid
};

enum class Created { yes, exists, failed };  // failed: errno, and the cause was printed
Created create_pid_file(const char* path, const PidFile& what);
// Replaces whatever is there, a link itself and not what it points to.
bool replace_pid_file(const char* path, const PidFile& what);
// False with a message where it is no pid file of ours.
bool read_pid_file(const char* path, PidFile* into);

}  // namespace umpteenth::ump
