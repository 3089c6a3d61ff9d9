// `ump connect`: stdin and stdout through the egress proxy to a host, for ssh's ProxyCommand.
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <initializer_list>

#include "ump/broker_client.h"
#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

constexpr int64_t kAnswerMs = 30000;
constexpr size_t kMaxAnswer = 64U << 10;
constexpr size_t kMaxHost = 253;
// What a pipe that polls writable takes without blocking.
constexpr size_t kPiece = 4096;

void append_base64(const char* bytes, size_t n, Buffer* to) {
  static const char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < n; i += 3) {
    const size_t have = n - i < 3 ? n - i : 3;
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < have ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k)
      to->push_back(k <= have ? kDigits[group >> (18 - 6 * k) & 63] : '=');
  }
}

bool is_host(const char* host) {
  const size_t length = strlen(host);
  if (length == 0 || length > kMaxHost) return false;
  for (const char* c = host; *c; ++c)
    if (*c <= ' ' || *c == 0x7f || strchr("/@:[]", *c)) return false;
  return true;
}

bool ask(int fd, const char* host, const char* port, const Buffer& token, int64_t deadline) {
  Buffer credentials, request;
  credentials.append("ump:");
  credentials.append(token.data(), token.size());
  for (const char* text : {"CONNECT ", host, ":", port, " HTTP/1.1\r\nHost: ", host, ":", port,
                           "\r\nProxy-Authorization: Basic "})
    request.append(text);
  append_base64(credentials.data(), credentials.size(), &request);
  request.append("\r\n\r\n");
  for (size_t sent = 0; sent < request.size();) {
    pollfd ready{fd, POLLOUT, 0};
    const int64_t left = deadline - monotonic_ms();
    if (left <= 0) return false;
    if (poll(&ready, 1, static_cast<int>(left)) < 1) continue;
    const ssize_t n = send(fd, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (n > 0) sent += static_cast<size_t>(n);
  }
  return true;
}

// The end of the head, 0 while it is not there.
size_t head_size(const Buffer& answer) {
  const char* end = strstr(answer.data(), "\r\n\r\n");
  return end ? static_cast<size_t>(end - answer.data()) + 4 : 0;
}

bool is_granted(const Buffer& answer) {
  return strncmp(answer.data(), "HTTP/1.", 7) == 0 && answer.size() > 12 &&
         strncmp(answer.data() + 8, " 200", 4) == 0;
}

// Reads the head, and of a refusal everything, since its reason is in the body.
bool receive(int fd, int64_t deadline, Buffer* answer) {
  while (answer->size() < kMaxAnswer) {
    if (head_size(*answer) > 0 && is_granted(*answer)) return true;
    pollfd ready{fd, POLLIN, 0};
    const int64_t left = deadline - monotonic_ms();
    if (left <= 0) return false;
    if (poll(&ready, 1, static_cast<int>(left)) < 1) continue;
    const ssize_t n = recv(fd, answer->room(kPiece), kPiece, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) break;
    answer->grow(static_cast<size_t>(n));
  }
  return head_size(*answer) > 0;
}

void complain_refused(const char* host, const char* port, const Buffer& answer) {
  const size_t head = head_size(answer);
  const char* status = strchr(answer.data(), ' ');
  if (!status) status = "";
  while (*status == ' ') ++status;
  const size_t status_size = strcspn(status, "\r\n");
  const char* reason = answer.data() + head;
  const size_t reason_size = strcspn(reason, "\r\n");
  complain("the egress proxy refused %s:%s: %.*s%s%.*s", host, port,
           static_cast<int>(status_size < 200 ? status_size : 200), status,
           reason_size > 0 ? ": " : "", static_cast<int>(reason_size < 1000 ? reason_size : 1000),
           reason);
}

struct Flow {
  char bytes[16384];
  size_t begin = 0, end = 0;
  bool ended = false;

  bool empty() const { return begin == end; }
  bool read_from(int fd) {
    const ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    ended = n == 0;
    begin = 0;
    end = static_cast<size_t>(n);
    return true;
  }
  bool write_to(int fd) {
    const size_t piece = end - begin < kPiece ? end - begin : kPiece;
    const ssize_t n = write(fd, bytes + begin, piece);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    begin += static_cast<size_t>(n);
    return true;
  }
};

Flow up, down;

// Until the host is done, or nobody reads what it says.
int tunnel(int fd) {
  for (bool told = false;;) {
    if (down.ended && down.empty()) return kOk;
    if (up.ended && up.empty() && !told) {
      shutdown(fd, SHUT_WR);
      told = true;
    }
    const bool read_stdin = up.empty() && !up.ended;
    const bool read_host = down.empty() && !down.ended;
    const short of_host = static_cast<short>((read_host ? POLLIN : 0) | (up.empty() ? 0 : POLLOUT));
    pollfd ready[3] = {{read_stdin ? STDIN_FILENO : -1, POLLIN, 0},
                       {down.empty() ? -1 : STDOUT_FILENO, POLLOUT, 0},
                       {of_host != 0 ? fd : -1, of_host, 0}};
    if (poll(ready, 3, -1) < 0) {
      if (errno == EINTR) continue;
      complain_errno("connect: cannot wait");
      return kFailed;
    }
    bool ok = true;
    if (ready[1].revents != 0) ok = down.write_to(STDOUT_FILENO);
    if (ok && !up.empty() && ready[2].revents != 0) ok = up.write_to(fd);
    if (ok && read_host && ready[2].revents != 0) ok = down.read_from(fd);
    if (ok && ready[0].revents != 0) ok = up.read_from(STDIN_FILENO);
    if (!ok) {
      complain_errno("connect: the connection broke");
      return kFailed;
    }
  }
}

}  // namespace

int command_connect(int argc, char** argv) {
  long number = 0;
  if (argc != 2) return usage("usage: ump connect HOST PORT");
  const char* host = argv[0];
  const char* port = argv[1];
  if (!is_host(host)) return usage("connect: \"%s\" is no host name", host);
  if (!parse_number(port, 1, 65535, &number))
    return usage("connect: the port must be a number from 1 to 65535");
  Buffer token, answer;
  const int fd = dial_broker(&token);
  if (fd < 0) return kFailed;
  const int64_t deadline = monotonic_ms() + kAnswerMs;
  if (!ask(fd, host, port, token, deadline) || !receive(fd, deadline, &answer)) {
    complain("the egress proxy gave no answer for %s:%s within 30 s", host, port);
    return kFailed;
  }
  if (!is_granted(answer)) {
    complain_refused(host, port, answer);
    return kFailed;
  }
  const size_t head = head_size(answer);
  down.end = answer.size() - head;
  memcpy(down.bytes, answer.data() + head, down.end);
  return tunnel(fd);
}

}  // namespace umpteenth::ump
