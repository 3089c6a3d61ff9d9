// Datagrams with both their ends: who sent it, and which of our addresses it came to.
#pragma once

#include <netinet/in.h>

#include <string>

#include "base/fd.h"

namespace umpteenth::broker::dns {

struct DatagramEnds {
  sockaddr_in peer{};
  in_addr local{};
};

Fd bind_datagrams(int port);  // on all addresses; Error(unavailable)
void ask_for_addresses(int fd);
// False where none is there.
bool receive_datagram(int fd, std::string& bytes, DatagramEnds& ends);
// From the address that the question came to. One that cannot be sent is lost.
void send_datagram(int fd, const DatagramEnds& to, std::string text);

std::string text_of(const in_addr& address);

}  // namespace umpteenth::broker::dns
