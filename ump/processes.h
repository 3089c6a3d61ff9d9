// Looking at and ending processes.
#pragma once

#include <sys/types.h>

namespace umpteenth::ump {

// Ticks since boot when it was started, 0 where there is no such process.
unsigned long long start_of(pid_t pid);

// Ends a process group and all descendants of `ancestor` (0: none): SIGTERM and SIGCONT, and after
// 1.5 s SIGKILL. False with a message for the groups 0 and 1, or where something outlives SIGKILL.
bool terminate_group(pid_t group, pid_t ancestor);

// How many processes the kernel has killed in this cgroup for want of memory; 0 where unknown.
long oom_kills();

}  // namespace umpteenth::ump
