// Clients of an HTTP server that mean it harm, for the inside of a sandbox. Built statically by
// lib.sh. In requests on stdin a line ends with \n alone, and TOKEN stands for $UMP_TOKEN.
//
//   flood mixed ADDRESS PORT SECONDS     connections of every hostile kind, as many as it takes
//   flood many ADDRESS PORT COUNT SECONDS [BYTES | half]
//        that many connections at once, each sends the request on stdin, then BYTES of a body or
//        (half) the end of its side, and reads nothing; at the end how each was answered. Before
//        SECONDS are over it ends when some were answered and no more are
//   flood repeat ADDRESS PORT COUNT [BYTES]
//        one connection, the request on stdin that many times, each read to its end; in it %N is
//        the number and BODY a JSON string of BYTES; at the end how often which status was the
//        answer
//   flood beat ADDRESS PORT FILE         the request on stdin again and again; into FILE the
//        milliseconds of each answer
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kMost = 1000, kRequest = 16384, kTries = 100 };
static const double kCalm = 3;
static struct sockaddr_in server;
static char request[kRequest];
static size_t request_size;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void read_request(void) {
  static char raw[kRequest / 2];
  const char* token = getenv("UMP_TOKEN");
  size_t n = fread(raw, 1, sizeof raw - 1, stdin);
  char* out = request;
  raw[n] = 0;
  for (const char* in = raw; *in && out < request + sizeof request - 256;) {
    if (token && !strncmp(in, "TOKEN", 5)) {
      out = stpcpy(out, token);
      in += 5;
      continue;
    }
    if (*in == '\n') *out++ = '\r';
    *out++ = *in++;
  }
  request_size = (size_t)(out - request);
}

static int dial(void) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr*)&server, sizeof server) != 0) close(fd), fd = -1;
  return fd;
}

static int send_all(int fd, const char* bytes, size_t n) {
  while (n > 0) {
    ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
    if (sent <= 0) return 0;
    bytes += sent;
    n -= (size_t)sent;
  }
  return 1;
}

// Answers by their status; 0 is silence, 1 a connection closed without one.
static int counts[600];
static void count(const char* answer, ssize_t n) {
  int status = n > 12 && !strncmp(answer, "HTTP/1.1 ", 9) ? atoi(answer + 9) : 1;
  ++counts[status > 0 && status < 600 ? status : 1];
}
static void print_counts(const char* verb) {
  printf("%s:", verb);
  for (int i = 0; i < 600; ++i)
    if (counts[i] && i > 1) printf(" %d:%d", i, counts[i]);
  printf(" closed:%d silent:%d\n", counts[1], counts[0]);
}

static int fds[kMost];

// How many of them have an answer, or were closed.
static int answered(int connections) {
  char byte;
  int n = 0;
  for (int i = 0; i < connections; ++i)
    n += fds[i] < 0 || recv(fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
  return n;
}

static int many(int connections, double seconds, long bytes, int half) {
  static long sent[kMost];
  static char block[65536], answer[4096];
  double end = now() + seconds, calm = now();
  int before = 0;
  memset(block, 'a', sizeof block);
  if (connections > kMost) connections = kMost;
  for (int i = 0; i < connections; ++i) {
    fds[i] = dial();
    if (fds[i] < 0) continue;
    send_all(fds[i], request, request_size);
    fcntl(fds[i], F_SETFL, O_NONBLOCK);
    if (half) shutdown(fds[i], SHUT_WR);
  }
  while (now() < end) {
    // The bodies in turn, so that all of them grow at once.
    for (int i = 0; i < connections; ++i) {
      long left = bytes - sent[i];
      if (fds[i] < 0 || left <= 0) continue;
      ssize_t n = send(fds[i], block, left < (long)sizeof block ? (size_t)left : sizeof block,
                       MSG_NOSIGNAL);
      if (n > 0) sent[i] += n;
    }
    int n = answered(connections);
    if (n != before) calm = now();
    before = n;
    if (n == connections || (n > 0 && now() - calm > kCalm)) break;
    poll(0, 0, 20);
  }
  for (int i = 0; i < connections; ++i) {
    ssize_t n = fds[i] < 0 ? 0 : recv(fds[i], answer, sizeof answer - 1, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) {
      ++counts[0];
      continue;
    }
    answer[n > 0 ? n : 0] = 0;
    count(answer, n);
  }
  print_counts("many");
  return 0;
}

// Reads one answer with a Content-Length or without a body.
static ssize_t read_answer(int fd, char* answer, size_t size) {
  size_t have = 0;
  for (;;) {
    ssize_t n = recv(fd, answer + have, size - 1 - have, 0);
    if (n <= 0) return 0;
    have += (size_t)n;
    answer[have] = 0;
    char* body = strstr(answer, "\r\n\r\n");
    if (!body) continue;
    char* length = strcasestr(answer, "\r\nContent-Length:");
    size_t whole =
        (size_t)(body + 4 - answer) + (length && length < body ? (size_t)atol(length + 17) : 0);
    if (have >= whole || have >= size - 1) return (ssize_t)have;
  }
}

// The request with its number, a body of that size and the body's length.
static char* filled(int number, size_t bytes, size_t* size) {
  static char* out;
  if (!out) out = malloc(kRequest + bytes + 64);
  char* to = out;
  for (const char* in = request; *in;) {
    if (!strncmp(in, "%N", 2)) {
      to += sprintf(to, "%06d", number);
      in += 2;
    } else if (!strncmp(in, "BODY", 4)) {
      memset(to, 'b', bytes);
      to += bytes;
      in += 4;
    } else {
      *to++ = *in++;
    }
  }
  *to = 0;
  *size = (size_t)(to - out);
  return out;
}

static int repeat(int times, size_t bytes) {
  static char answer[65536];
  int fd = -1, again = kTries;
  for (int i = 0; i < times; ++i) {
    size_t size;
    char* text = filled(i, bytes, &size);
    if (fd < 0) fd = dial();
    ssize_t n = fd >= 0 && send_all(fd, text, size) ? read_answer(fd, answer, sizeof answer) : 0;
    count(answer, n);
    if (n > 12 && (!strncmp(answer + 9, "429", 3) || !strncmp(answer + 9, "503", 3)) &&
        again-- > 0) {
      poll(0, 0, 100);
      --i;
    }
    if (n <= 0 || strcasestr(answer, "\r\nConnection: close")) {
      if (fd >= 0) close(fd);
      fd = -1;
    }
  }
  print_counts("repeat");
  return 0;
}

_Noreturn static void beat(const char* path) {
  static char answer[65536];
  int out = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  for (;;) {
    double begin = now();
    int fd = dial();
    ssize_t n =
        fd >= 0 && send_all(fd, request, request_size) ? read_answer(fd, answer, sizeof answer) : 0;
    if (fd >= 0) close(fd);
    dprintf(out, "%ld %d\n", (long)((now() - begin) * 1000), n > 12 ? atoi(answer + 9) : 0);
    poll(0, 0, 50);
  }
}

// Each kind of hostile client in turn, as many as the server takes, until the time is over.
static int mixed(double seconds) {
  static const char* const kStarts[] = {
      "",                                                  // silent
      "GET /v1/state HTTP/1.1\r\nHost: umpteenth\r\nX: ",  // a header without end
      "POST /v1/output HTTP/1.1\r\nHost: umpteenth\r\nContent-Length: 99999999999\r\n\r\n",
      "POST /v1/output HTTP/1.1\r\nHost: umpteenth\r\nTransfer-Encoding: "
      "chunked\r\n\r\nfffffffffffffff\r\n",
      "\x05\xff",
      "PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n",
      "\r\n\r\nPROXY v2",
      "\x16\x03\x01\xff\xff"};
  char block[4096];
  int open_now = 0;
  long opened = 0, sent = 0;
  double end = now() + seconds;
  memset(block, 'a', sizeof block);
  while (now() < end) {
    if (open_now == 900) {
      int victim = rand() % open_now;
      close(fds[victim]);
      fds[victim] = fds[--open_now];
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) {
      while (open_now > 0) close(fds[--open_now]);
      continue;
    }
    connect(fd, (struct sockaddr*)&server, sizeof server);
    struct pollfd p = {fd, POLLOUT, 0};
    poll(&p, 1, 20);
    const char* s = kStarts[opened++ % 8];
    send(fd, s, strlen(s), MSG_NOSIGNAL);
    fds[open_now++] = fd;
    for (int i = 0; i < open_now; i += 7) {
      ssize_t more = send(fds[i], block, sizeof block, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (more > 0) sent += more;
    }
  }
  printf("mixed: %ld connections, %ld bytes\n", opened, sent);
  return 0;
}

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc < 5) return 2;
  server.sin_family = AF_INET;
  server.sin_port = htons((unsigned short)atoi(argv[3]));
  if (inet_pton(AF_INET, argv[2], &server.sin_addr) != 1) return 2;
  if (!strcmp(argv[1], "mixed")) return mixed(atof(argv[4]));
  read_request();
  const char* last = argc > 5 ? argv[argc - 1] : "0";
  if (!strcmp(argv[1], "many") && argc >= 6)
    return many(atoi(argv[4]), atof(argv[5]), argc > 6 ? atol(last) : 0,
                argc > 6 && !strcmp(last, "half"));
  if (!strcmp(argv[1], "repeat")) return repeat(atoi(argv[4]), argc > 5 ? (size_t)atol(last) : 0);
  if (!strcmp(argv[1], "beat")) beat(argv[4]);
  return 2;
}
