// Growing bytes on malloc. Running out of memory ends the program with a message.
#pragma once

#include <stddef.h>

namespace umpteenth::ump {

class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  const char* data() const { return data_ ? data_ : ""; }  // NUL-terminated
  size_t size() const { return size_; }
  void append(const char* bytes, size_t n);
  void append(const char* text);
  void push_back(char c) { append(&c, 1); }
  void append_number(long n);
  void clear() { truncate(0); }
  void truncate(size_t n);
  char* room(size_t n);  // at least n writable bytes after the end; made part of it by grow()
  void grow(size_t n);

 private:
  char* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace umpteenth::ump
