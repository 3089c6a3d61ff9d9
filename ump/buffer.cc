#include "ump/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace umpteenth::ump {

Buffer::~Buffer() { free(data_); }

char* Buffer::room(size_t n) {
  if (size_ + n + 1 > capacity_) {
    size_t wanted = capacity_ ? capacity_ * 2 : 256;
    while (wanted < size_ + n + 1) wanted *= 2;
    char* grown = static_cast<char*>(realloc(data_, wanted));
    if (!grown) {
      fputs("ump: out of memory\n", stderr);
      exit(1);
    }
    data_ = grown;
    capacity_ = wanted;
  }
  return data_ + size_;
}

void Buffer::grow(size_t n) {
  size_ += n;
  data_[size_] = '\0';
}

void Buffer::truncate(size_t n) {
  if (n > size_ || !data_) return;
  size_ = n;
  data_[size_] = '\0';
}

void Buffer::append(const char* bytes, size_t n) {
  memcpy(room(n), bytes, n);
  grow(n);
}

void Buffer::append(const char* text) { append(text, strlen(text)); }

void Buffer::append_number(long n) {
  char text[24];
  append(text, static_cast<size_t>(snprintf(text, sizeof text, "%ld", n)));
}

}  // namespace umpteenth::ump
