#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/ump/support.h"

namespace umpteenth {
namespace {

// Bound to a loopback port; accepts only where it listens.
struct Bound {
  Fd fd;
  std::string address;
};
Bound bound(bool listening) {
  Bound b;
  b.fd = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t n = sizeof a;
  EXPECT_EQ(bind(b.fd.get(), reinterpret_cast<sockaddr*>(&a), n), 0);
  EXPECT_TRUE(!listening || listen(b.fd.get(), 8) == 0);
  getsockname(b.fd.get(), reinterpret_cast<sockaddr*>(&a), &n);
  b.address = "127.0.0.1:" + std::to_string(ntohs(a.sin_port));
  return b;
}

TEST(Netcheck, says_of_each_address_whether_it_answers) {
  const Bound open = bound(true), closed = bound(false);
  const CommandResult as_expected =
      ump({"netcheck", "--reach", open.address, "--unreachable", closed.address});
  EXPECT_EQ(as_expected.exit_code, 0) << as_expected.err;
  EXPECT_EQ(as_expected.out,
            "reachable " + open.address + "\nunreachable " + closed.address + "\n");
  EXPECT_EQ(ump({"netcheck", "--unreachable", open.address}).exit_code, 1);
  EXPECT_EQ(ump({"netcheck", "--reach", open.address, closed.address}).exit_code, 1);
}

TEST(Netcheck, an_address_that_stays_silent_is_unreachable_after_the_timeout) {
  // A full backlog: the kernel lets further connections wait.
  const Bound full = bound(false);
  ASSERT_EQ(listen(full.fd.get(), 0), 0);
  sockaddr_in a{};
  socklen_t n = sizeof a;
  getsockname(full.fd.get(), reinterpret_cast<sockaddr*>(&a), &n);
  std::vector<Fd> waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    (void)connect(waiting.back().get(), reinterpret_cast<sockaddr*>(&a), n);
  }
  const CommandResult r = ump({"netcheck", "--timeout", "200ms", "--unreachable", full.address});
  EXPECT_EQ(r.exit_code, 0) << r.out;
}

TEST(Netcheck, wrong_usage_is_told_and_tries_nothing) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"127.0.0.1:80"},
                                             {"--reach"},
                                             {"--reach", "localhost:80"},
                                             {"--reach", "127.0.0.1"},
                                             {"--reach", "127.0.0.1:0"},
                                             {"--reach", "127.0.0.1:65536"},
                                             {"--reach", "icmp:::1"},
                                             {"--reach", "icmp:"},
                                             {"--timeout", "0s", "--reach", "127.0.0.1:80"},
                                             {"--timeout", "2m", "--reach", "127.0.0.1:80"},
                                             {"--timeout"}}) {
    std::vector<std::string> all = {"netcheck"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const CommandResult r = ump(all);
    EXPECT_EQ(r.exit_code, 2) << (arguments.empty() ? "" : arguments.back());
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(r.err.starts_with("ump: netcheck: ")) << r.err;
  }
  std::vector<std::string> many = {"netcheck", "--reach"};
  many.resize(2 + 65, "127.0.0.1:1");
  EXPECT_EQ(ump(many).exit_code, 2);
}

}  // namespace
}  // namespace umpteenth
