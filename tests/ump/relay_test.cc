#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "tests/ump/support.h"

namespace umpteenth {
namespace {

constexpr size_t kHeader = 28;  // PROXY v2 over IPv4

std::string read_exactly(int fd, size_t n) {
  std::string bytes(n, '\0');
  size_t got = 0;
  while (got < n) {
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, 10'000) != 1) break;
    const ssize_t r = recv(fd, bytes.data() + got, n - got, 0);
    if (r <= 0) break;
    got += static_cast<size_t>(r);
  }
  bytes.resize(got);
  return bytes;
}

std::string read_to_end(int fd) { return read_exactly(fd, 64U << 20); }

// Sent, and whole: the other side is there to read.
void send_text(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

class UmpRelay : public testing::Test {
 protected:
  void SetUp() override {
    target_ = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, socket_path().c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(bind(target_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(target_.get(), 600), 0);
    relay_ = std::make_unique<Background>(
        std::vector<std::string>{ump_path(), "relay", "--listen", "0.0.0.0:0", "--socket",
                                 socket_path()},
        true);
    const std::string line = relay_->read_line();
    ASSERT_TRUE(line.starts_with("ump: relay listens on port ")) << line;
    port_ = std::stoi(line.substr(line.rfind(' ')));
  }

  std::string socket_path() const { return (dir_.path() / "broker.sock").string(); }

  Fd connect_from(const char* source = "127.0.0.1", const char* to = "127.0.0.1") const {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in from{}, address{};
    from.sin_family = address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    inet_pton(AF_INET, source, &from.sin_addr);
    inet_pton(AF_INET, to, &address.sin_addr);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  Fd accept_target() const {
    pollfd ready{target_.get(), POLLIN, 0};
    if (poll(&ready, 1, 10'000) != 1) return Fd();
    return Fd(accept4(target_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  TempDir dir_;
  Fd target_;
  std::unique_ptr<Background> relay_;
  int port_ = 0;
};

TEST_F(UmpRelay, tells_the_peer_and_the_address_that_was_reached) {
  const Fd client = connect_from("127.0.0.7", "127.0.0.5");
  sockaddr_in mine{};
  socklen_t length = sizeof mine;
  getsockname(client.get(), reinterpret_cast<sockaddr*>(&mine), &length);
  const Fd target = accept_target();
  send_text(client.get(), "GET");
  std::string expected("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0C\x7F\0\0\x07\x7F\0\0\x05", 24);
  expected.append(reinterpret_cast<const char*>(&mine.sin_port), 2);
  expected += static_cast<char>(port_ >> 8);
  expected += static_cast<char>(port_ & 0xFF);
  EXPECT_EQ(read_exactly(target.get(), kHeader + 3), expected + "GET");
}

TEST_F(UmpRelay, a_client_that_has_said_everything_still_gets_its_answer) {
  const Fd client = connect_from();
  send_text(client.get(), "question");
  shutdown(client.get(), SHUT_WR);
  Fd target = accept_target();
  EXPECT_EQ(read_to_end(target.get()).substr(kHeader), "question");
  send_text(target.get(), "answer");
  target.reset();
  EXPECT_EQ(read_to_end(client.get()), "answer");
}

TEST_F(UmpRelay, closes_the_client_when_the_target_is_done) {
  const Fd client = connect_from();
  Fd target = accept_target();
  send_text(target.get(), "bye");
  target.reset();
  EXPECT_EQ(read_to_end(client.get()), "bye");
}

TEST_F(UmpRelay, closes_the_target_when_the_client_resets) {
  Fd client = connect_from();
  const Fd target = accept_target();
  EXPECT_EQ(read_exactly(target.get(), kHeader).size(), kHeader);
  const linger reset{1, 0};
  setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  client.reset();
  EXPECT_EQ(read_to_end(target.get()), "");
}

TEST_F(UmpRelay, carries_large_amounts_both_ways_at_once) {
  std::string up(5'000'000, '\0'), down(6'000'000, '\0');
  for (size_t i = 0; i < up.size(); ++i) up[i] = static_cast<char>(i * 7 + i / 1000);
  for (size_t i = 0; i < down.size(); ++i) down[i] = static_cast<char>(i * 3 + i / 777);
  const Fd client = connect_from();
  const Fd target = accept_target();
  std::jthread sends_up([&] { send_text(client.get(), up); });
  std::jthread sends_down([&] { send_text(target.get(), down); });
  std::string at_client;
  std::jthread reads([&] { at_client = read_exactly(client.get(), down.size()); });
  EXPECT_TRUE(read_exactly(target.get(), kHeader + up.size()).substr(kHeader) == up);
  reads.join();
  EXPECT_TRUE(at_client == down);
}

TEST_F(UmpRelay, holds_back_a_client_whose_target_does_not_read) {
  const Fd client = connect_from();
  const Fd target = accept_target();
  const int small = 65536;
  setsockopt(client.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  const std::string chunk(65536, 'x');
  size_t sent = 0;
  pollfd ready{client.get(), POLLOUT, 0};
  while (sent < (64U << 20) && poll(&ready, 1, 300) == 1) {
    const ssize_t n = send(client.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (n > 0) sent += static_cast<size_t>(n);
  }
  EXPECT_LT(sent, 32U << 20) << "someone buffers without bound";
  const Fd other = connect_from();
  EXPECT_TRUE(accept_target()) << "the others are served meanwhile";
}

TEST_F(UmpRelay, has_320_places_for_one_source_and_always_some_for_another) {
  std::vector<Fd> clients, targets;
  const auto take = [&](int places, const char* source) {
    for (int i = 0; i < places; ++i) {
      clients.push_back(connect_from(source));
      targets.push_back(accept_target());
      ASSERT_TRUE(targets.back()) << source << ": " << i;
    }
    const Fd refused = connect_from(source);
    EXPECT_EQ(read_to_end(refused.get()), "") << source << " has all that it gets";
  };
  take(320, "127.0.0.1");
  take(320, "127.0.0.2");
  take(192, "127.0.0.3");  // as many as are left
  take(96, "127.0.0.4");
  // A place that becomes free is given again.
  targets.front().reset();
  EXPECT_EQ(read_to_end(clients.front().get()), "");
  const Fd next = connect_from("127.0.0.4");
  EXPECT_TRUE(accept_target());
}

TEST_F(UmpRelay, closes_at_once_when_there_is_no_broker) {
  target_.reset();
  const Fd client = connect_from();
  EXPECT_EQ(read_to_end(client.get()), "");
}

TEST_F(UmpRelay, uses_no_processor_while_nothing_moves) {
  // One side gone, the other neither reading nor writing: an event loop must not spin on that.
  const Fd client = connect_from();
  const Fd target = accept_target();
  shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(read_to_end(target.get()).size(), kHeader);
  const auto ticks = [&] {
    std::string stat = read_file("/proc/" + std::to_string(relay_->pid()) + "/stat");
    long user = 0, system = 0;
    sscanf(stat.c_str() + stat.rfind(')') + 2,
           "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system);
    return user + system;
  };
  const long before = ticks();
  poll(nullptr, 0, 500);
  EXPECT_LT(ticks() - before, 20) << "of about 50 in that time";
}

TEST_F(UmpRelay, ends_well_when_told) {
  kill(relay_->pid(), SIGTERM);
  EXPECT_EQ(relay_->wait(), 0);
}

// With --dns: a port of 127.0.0.0/8, and the forwarder's socket is the target.
class UmpRelayDns : public UmpRelay {
 protected:
  void SetUp() override {
    UmpRelay::SetUp();
    // Nobody else takes the number between the two, or the test is tried with the next.
    for (int tries = 0; tries < 20 && !dns_relay_; ++tries) start();
    ASSERT_TRUE(dns_relay_);
  }
  void start() {
    {
      const Fd probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      sockaddr_in at{};
      at.sin_family = AF_INET;
      socklen_t n = sizeof at;
      bind(probe.get(), reinterpret_cast<sockaddr*>(&at), n);
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&at), &n);
      dns_port_ = ntohs(at.sin_port);
    }
    auto relay = std::make_unique<Background>(
        std::vector<std::string>{ump_path(), "relay", "--listen", "0.0.0.0:0", "--socket",
                                 socket_path(), "--dns", "0.0.0.0:" + std::to_string(dns_port_),
                                 "--dns-socket", socket_path()},
        true);
    relay->read_line();
    if (eventually([&] { return is_bound(); }, std::chrono::seconds(3)))
      dns_relay_ = std::move(relay);
  }
  bool is_bound() const {
    const Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in at = address("127.0.0.1");
    return bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0;
  }
  sockaddr_in address(const char* host) const {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(dns_port_));
    inet_pton(AF_INET, host, &at.sin_addr);
    return at;
  }
  Fd ask(const char* to, std::string_view question) const {
    Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in at = address(to);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(send(fd.get(), question.data(), question.size(), 0),
              static_cast<ssize_t>(question.size()));
    return fd;
  }

  int dns_port_ = 0;
  std::unique_ptr<Background> dns_relay_;
};

TEST_F(UmpRelayDns, a_datagram_is_a_connection_with_its_addresses_and_its_answer_a_datagram) {
  const Fd client = ask("127.0.0.9", "question");
  sockaddr_in mine{};
  socklen_t length = sizeof mine;
  getsockname(client.get(), reinterpret_cast<sockaddr*>(&mine), &length);
  const Fd target = accept_target();
  std::string expected("\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0C", 16);
  expected.append(reinterpret_cast<const char*>(&mine.sin_addr), 4);
  expected += std::string("\x7F\0\0\x09", 4);
  expected.append(reinterpret_cast<const char*>(&mine.sin_port), 2);
  expected += std::string("\0\x35\0\x08question", 12);
  EXPECT_EQ(read_exactly(target.get(), expected.size()), expected);
  send_text(target.get(), std::string("\0\x06", 2));
  send_text(target.get(), "answer");
  EXPECT_EQ(read_exactly(client.get(), 6), "answer") << "connected: only from 127.0.0.9";
}

TEST_F(UmpRelayDns, more_questions_than_there_is_room_for_are_lost_and_do_no_harm) {
  std::vector<Fd> clients;
  for (int i = 0; i < 300; ++i) clients.push_back(ask("127.0.0.1", "q" + std::to_string(i)));
  std::vector<Fd> targets;
  for (pollfd ready{target_.get(), POLLIN, 0}; poll(&ready, 1, 1000) == 1;)
    targets.push_back(accept_target());
  EXPECT_LE(targets.size(), 64U);
  targets.clear();  // all without an answer
  EXPECT_TRUE(eventually([&] {
    const Fd client = ask("127.0.0.1", "again");
    pollfd ready{target_.get(), POLLIN, 0};
    return poll(&ready, 1, 200) == 1;
  }));
  EXPECT_TRUE(lives(dns_relay_->pid()));
}

TEST_F(UmpRelayDns, by_tcp_it_is_a_connection_like_any_other) {
  const Fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at = address("127.0.0.1");
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  send_text(client.get(), "by stream");
  const Fd target = accept_target();
  EXPECT_EQ(read_exactly(target.get(), kHeader + 9).substr(kHeader), "by stream");
}

TEST(UmpRelayUsage, names_what_is_wrong) {
  EXPECT_EQ(ump({"relay", "--listen", "127.0.0.1:0"}).exit_code, 2);
  EXPECT_EQ(ump({"relay", "--listen", "localhost:1", "--socket", "/x"}).exit_code, 2);
  EXPECT_EQ(ump({"relay", "--listen", "127.0.0.1:70000", "--socket", "/x"}).exit_code, 2);
  EXPECT_EQ(ump({"relay", "--listen", "127.0.0.1:0", "--socket", std::string(120, 'x')}).exit_code,
            2);
  EXPECT_EQ(ump({"relay", "--what"}).exit_code, 2);
  EXPECT_EQ(
      ump({"relay", "--listen", "127.0.0.1:0", "--socket", "/x", "--dns", "127.0.0.1:0"}).exit_code,
      2);
}

}  // namespace
}  // namespace umpteenth
