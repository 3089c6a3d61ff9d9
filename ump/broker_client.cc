#include "ump/broker_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <initializer_list>

#include "ump/http_answer.h"
#include "ump/json.h"
#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

constexpr int64_t kConnectMs = 10000;
constexpr int64_t kCallMs = 600000;
constexpr size_t kMaxAnswer = 128U << 20;

struct Broker {
  Buffer host, host_and_port, token;
  long port = 80;
};

bool parse_url(const char* url, Broker* broker) {
  constexpr char kScheme[] = "http://";
  if (strncmp(url, kScheme, strlen(kScheme)) != 0) return false;
  const char* authority = url + strlen(kScheme);
  const size_t length = strcspn(authority, "/?#");
  if (authority[length] != '\0' && strcmp(authority + length, "/") != 0) return false;
  Buffer text;
  text.append(authority, length);
  const char* host = text.data();
  if (const char* at = strrchr(host, '@')) {
    const char* colon = strchr(host, ':');
    if (!colon || colon > at) return false;
    broker->token.append(colon + 1, static_cast<size_t>(at - colon - 1));
    host = at + 1;
  }
  broker->host_and_port.append(host);
  const char* end = host + strlen(host);
  const char* colon = strrchr(host, ':');
  if (*host == '[') {
    const char* bracket = strchr(host, ']');
    if (!bracket) return false;
    broker->host.append(host + 1, static_cast<size_t>(bracket - host - 1));
    colon = bracket[1] == ':' ? bracket + 1 : nullptr;
    if (!colon && bracket[1] != '\0') return false;
  } else {
    broker->host.append(host, static_cast<size_t>((colon ? colon : end) - host));
  }
  return broker->host.size() > 0 && (!colon || parse_number(colon + 1, 1, 65535, &broker->port));
}

bool find_broker(Broker* broker) {
  const char* url = getenv("UMP_BROKER_URL");
  const char* token = getenv("UMP_TOKEN");
  if (url && *url && !parse_url(url, broker)) {
    complain("UMP_BROKER_URL is no http://HOST:PORT");
    return false;
  }
  if (token && *token) {
    broker->token.clear();
    broker->token.append(token);
  }
  if (url && *url && broker->token.size() > 0) return true;
  complain("UMP_BROKER_URL and UMP_TOKEN are not set; ump only works inside an Umpteenth sandbox");
  return false;
}

// There is no resolver in a sandbox: the broker's name stands in /etc/hosts.
bool find_in_hosts(const char* name, Buffer* address) {
  Buffer hosts;
  if (!read_file("/etc/hosts", 1U << 20, &hosts)) return false;
  Buffer copy;
  copy.append(hosts.data(), hosts.size());
  char* rest_of_file = copy.room(0) - copy.size();
  while (char* line = strsep(&rest_of_file, "\n")) {
    line[strcspn(line, "#")] = '\0';
    char* words = line;
    const char* first = nullptr;
    while (const char* word = strsep(&words, " \t\r")) {
      if (*word == '\0') continue;
      if (!first) {
        first = word;
      } else if (strcasecmp(word, name) == 0) {
        address->append(first);
        return true;
      }
    }
  }
  return false;
}

bool to_address(const char* text, long port, sockaddr_storage* address, socklen_t* length) {
  auto* v4 = reinterpret_cast<sockaddr_in*>(address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(address);
  if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    *length = sizeof *v4;
    return true;
  }
  if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1) return false;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(static_cast<uint16_t>(port));
  *length = sizeof *v6;
  return true;
}

int connect_to(const Broker& broker) {
  sockaddr_storage address{};
  socklen_t length = 0;
  Buffer found;
  if (!to_address(broker.host.data(), broker.port, &address, &length) &&
      !(find_in_hosts(broker.host.data(), &found) &&
        to_address(found.data(), broker.port, &address, &length))) {
    complain("cannot find the address of %s in /etc/hosts", broker.host.data());
    return -1;
  }
  const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int error = fd < 0 ? errno : 0;
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) {
    error = errno;
    pollfd ready{fd, POLLOUT, 0};
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      if (poll(&ready, 1, kConnectMs) != 1)
        error = ETIMEDOUT;
      else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    }
  }
  if (error == 0) return fd;
  if (fd >= 0) close(fd);
  errno = error;
  complain_errno("cannot reach the broker at %s", broker.host_and_port.data());
  return -1;
}

bool wait_for(int fd, short what, int64_t deadline) {
  const int64_t left = deadline - monotonic_ms();
  pollfd ready{fd, what, 0};
  return left > 0 && (poll(&ready, 1, static_cast<int>(left)) > 0 || errno == EINTR);
}

// What the broker has to say may come before it has read everything, so a broken connection is
// found out when reading.
void send_all(int fd, const Buffer& bytes, int64_t deadline) {
  size_t sent = 0;
  while (sent < bytes.size() && wait_for(fd, POLLOUT, deadline)) {
    const ssize_t n = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) return;
    sent += static_cast<size_t>(n);
  }
}

// The connection is closed after the answer, so the end of the stream is the end of the answer.
bool receive(int fd, int64_t deadline, Buffer* into) {
  while (into->size() < kMaxAnswer) {
    if (!wait_for(fd, POLLIN, deadline)) {
      complain("the broker did not answer in time");
      return false;
    }
    const ssize_t n = recv(fd, into->room(65536), 65536, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) return true;  // too short an answer is noticed when it is parsed
    into->grow(static_cast<size_t>(n));
    if (is_whole_answer(*into)) return true;
  }
  complain("the broker's answer is too large");
  return false;
}

}  // namespace

int dial_broker(Buffer* token) {
  Broker broker;
  if (!find_broker(&broker)) return -1;
  token->append(broker.token.data(), broker.token.size());
  return connect_to(broker);
}

bool call_broker(const char* method, const char* path, const Buffer* body, Answer* answer) {
  Broker broker;
  if (!find_broker(&broker)) return false;
  Buffer request;
  for (const char* text : {method, " ", path, " HTTP/1.1\r\nHost: ", broker.host_and_port.data(),
                           "\r\nAuthorization: Bearer ", broker.token.data(),
                           "\r\nUser-Agent: ump/" UMPTEENTH_VERSION "\r\nConnection: close\r\n"})
    request.append(text);
  if (body) {
    request.append("Content-Type: application/json\r\nContent-Length: ");
    request.append_number(static_cast<long>(body->size()));
    request.append("\r\n");
  }
  request.append("\r\n");
  if (body) request.append(body->data(), body->size());

  const int fd = connect_to(broker);
  if (fd < 0) return false;
  const int64_t deadline = monotonic_ms() + kCallMs;
  send_all(fd, request, deadline);
  Buffer raw;
  const bool received = receive(fd, deadline, &raw);
  close(fd);
  if (!received) return false;
  if (parse_answer(raw, &answer->status, &answer->body)) return true;
  complain("the broker's answer broke off");
  return false;
}

bool call_broker_ok(const char* method, const char* path, const Buffer* body, Answer* answer) {
  if (!call_broker(method, path, body, answer)) return false;
  if (answer->status >= 200 && answer->status < 300) return true;
  complain_about(*answer);
  return false;
}

void complain_about(const Answer& answer) {
  Buffer message;
  if (json_member(answer.body.data(), answer.body.size(), "message", false, &message))
    complain("%s", message.data());
  else
    complain("the broker answered with the HTTP status %d", answer.status);
}

}  // namespace umpteenth::ump
