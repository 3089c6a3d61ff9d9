// DNS questions through the relay: each datagram becomes a short connection to the forwarder's Unix
// socket, behind a PROXY v2 header that says who asked and at which address, and its answer a
// datagram from that address.
#pragma once

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

namespace umpteenth::ump {

class RelayDns {
 public:
  static constexpr int kMostQuestions = 128;

  // epoll: id is that of the datagram socket, id + 1 + n of the n-th question. False (said) where
  // the address cannot be had.
  bool open(int epoll, uint64_t id, int datagrams, const char* path);
  bool is_open() const { return datagrams_ > 0; }
  bool owns(uint64_t id) const { return is_open() && id >= id_ && id <= id_ + kMostQuestions; }
  void step(uint64_t id);
  bool has_deadline() const;
  void expire(int64_t now);

 private:
  static constexpr int kMostPerSource = 64;
  static constexpr size_t kMostQuestion = 1024, kMostAnswer = 4096;
  // All zero at first, so that the table takes no room in the program.
  struct Question {
    int fd;  // 0 where it is free
    int64_t deadline;
    sockaddr_in peer;
    in_addr local;
    size_t got;
    unsigned char answer[2 + kMostAnswer];
  };

  void take_questions();
  void ask(const sockaddr_in& peer, in_addr local, const unsigned char* question, size_t n);
  void read_answer(Question& q);
  void send_answer(const Question& q, size_t n);
  static void free_question(Question& q);

  int epoll_ = 0, datagrams_ = 0;
  uint64_t id_ = 0;
  const char* path_ = nullptr;
  Question questions_[kMostQuestions] = {};
};

}  // namespace umpteenth::ump
