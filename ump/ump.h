// The parts of `ump`: one function a command, and what they share. libc only; nothing throws:
// functions answer bool or an exit code, and the failing call says why.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ump/buffer.h"

namespace umpteenth::ump {

enum : int { kOk = 0, kFailed = 1, kUsage = 2 };

// "ump: …" and a newline on stderr.
__attribute__((format(printf, 1, 2))) void complain(const char* format, ...);
// The same and ": " strerror(errno).
__attribute__((format(printf, 1, 2))) void complain_errno(const char* format, ...);
// complain(), returns kUsage.
__attribute__((format(printf, 1, 2))) int usage(const char* format, ...);

// argc and argv begin after the command's name.
int command_init(int argc, char** argv);
int command_exec(int argc, char** argv);
int command_relay(int argc, char** argv);
int command_netcheck(int argc, char** argv);
int command_hostfw(int argc, char** argv);
int command_connect(int argc, char** argv);
int command_llm(int argc, char** argv);
int command_state(int argc, char** argv);
int command_output(int argc, char** argv);
int command_step(int argc, char** argv);
int command_summary(int argc, char** argv);
int command_fail(int argc, char** argv);

int64_t monotonic_ms();
// "90s", "1h30m", "250ms"; false where it is none or is not above zero.
bool parse_duration(const char* text, int64_t* ms);
// A whole decimal number within the bounds.
bool parse_number(const char* text, long min, long max, long* number);

bool write_all(int fd, const char* bytes, size_t n);
// To the end; false with errno, EFBIG beyond max.
bool read_all(int fd, size_t max, Buffer* into);
bool read_file(const char* path, size_t max, Buffer* into);

}  // namespace umpteenth::ump
