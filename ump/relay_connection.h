// One connection through the relay: a client, the broker's socket, and a bounded buffer each way.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

namespace umpteenth::ump {

// Bytes on their way in one direction.
class Pipe {
 public:
  void reset();
  bool done() const { return finished_; }  // the source ended and all of it was written
  bool wants_to_read() const { return !ended_ && end_ < sizeof bytes_; }
  bool wants_to_write() const { return begin_ < end_; }
  bool ended() const { return ended_; }
  bool put(const void* bytes, size_t n);
  // False on an error of either side.
  bool move(int from, int to);

 private:
  bool read_from(int fd);
  bool write_to(int fd);

  size_t begin_ = 0, end_ = 0;
  bool ended_ = false, finished_ = false;
  char bytes_[16384] = {};
};

class RelayConnection {
 public:
  bool in_use() const { return in_use_; }
  bool is_from(const sockaddr_storage& peer) const;
  bool has_deadline() const { return deadline_ != 0; }
  bool overdue(int64_t now) const { return deadline_ != 0 && (now >= deadline_ || !dialled_); }

  // `id` marks the client in epoll, id + 1 the target.
  void open(int epoll, uint64_t id, int client, const sockaddr_storage& peer, const char* path);
  // Moves what can be moved, closes when the target is done or something broke.
  void step(int64_t now);

 private:
  enum class Dial { done, again, failed };
  Dial dial();
  bool greet();  // queues the PROXY v2 header
  bool watch(int fd, uint64_t id, uint32_t wanted, uint32_t* have);
  void close_both();

  // All zero at first, so that the table of connections takes no room in the program.
  bool in_use_ = false, dialled_ = false, half_closed_ = false;
  int epoll_ = 0, client_ = 0, target_ = 0;
  uint64_t id_ = 0;
  uint32_t client_events_ = 0, target_events_ = 0;
  int64_t deadline_ = 0;
  const char* path_ = nullptr;
  sockaddr_storage peer_{};
  Pipe up_, down_;
};

}  // namespace umpteenth::ump
