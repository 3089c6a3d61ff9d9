// Messages and rules; and the forwarder between sandboxes and an upstream on loopback.
#include <gtest/gtest.h>

#include <sys/un.h>

#include <mutex>
#include <random>

#include "broker/dns/forwarder.h"
#include "broker/dns/policy.h"
#include "tests/broker/dns_support.h"
#include "tests/broker/front_support.h"

namespace umpteenth::broker::dns {
namespace {

std::string https(const std::string& parameters) {
  return record(kHttps, word(1) + wire("svc.example.com") + parameters);
}

TEST(DnsMessage, a_question_is_taken_apart) {
  const auto q = parse_query(asks("WWW.Example.com", kA, 99));
  ASSERT_TRUE(q);
  EXPECT_EQ(q->id, 99);
  EXPECT_TRUE(q->recursion_desired);
  EXPECT_EQ(q->question.name(), "www.example.com");
  EXPECT_EQ(q->question.type, kA);
  EXPECT_EQ(q->udp_bytes, 512U);
  EXPECT_EQ(parse_query(query_text(1, q->question))->udp_bytes, 1232U);
  EXPECT_EQ(parse_query(asks("", kA))->question.name(), "");
  // A label may hold what would be taken for several, or for something else in a text.
  EXPECT_EQ((Question{std::string("\x03"
                                  "a.b\x02\n\xff\x00",
                                  8),
                      kA}
                 .name()),
            "a?b.??");
}

TEST(DnsMessage, what_is_no_plain_question_is_none) {
  const std::string good = asks("example.com", kA);
  EXPECT_TRUE(parse_query(good));
  for (size_t n = 0; n < good.size(); ++n)
    EXPECT_FALSE(parse_query(std::string_view(good).substr(0, n))) << n;
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string text = good;
    return text.replace(at, bytes.size(), bytes);
  };
  EXPECT_FALSE(parse_query(with(2, word(0x8100)))) << "an answer";
  EXPECT_FALSE(parse_query(with(2, word(0x2900)))) << "an update";
  EXPECT_FALSE(parse_query(with(4, word(2)))) << "two questions";
  EXPECT_FALSE(parse_query(with(6, word(1)))) << "a question with answers";
  EXPECT_FALSE(parse_query(with(good.size() - 2, word(3)))) << "class CHAOS";
  EXPECT_FALSE(parse_query(with(12, "\xc0\x0c"))) << "a name that points at itself";
}

TEST(DnsMessage, an_answer_goes_through_without_what_sandboxes_have_no_use_for) {
  const std::string question = asks("example.com", kHttps);
  const std::string parameters = word(1) + word(3) + "\x02h2" + word(4) + word(4) +
                                 std::string("\x01\x02\x03\x04") + word(6) + word(16) +
                                 std::string(16, '\xfd');
  const auto answer = parse_answer(
      says(question, {record(kCname, wire("b.example.com")), https(parameters), a("203.0.113.10"),
                      record(kAaaa, std::string(16, 'x')), record(46, "signature")}));
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->records.size(), 3U);
  EXPECT_EQ(answer->records[0].data, wire("b.example.com"));
  EXPECT_EQ(answer->records[1].data,
            word(1) + wire("svc.example.com") + parameters.substr(0, parameters.size() - 20))
      << "hints at IPv6 are left out";
  EXPECT_EQ(answer->records[2].data, std::string("\xcb\x00\x71\x0a", 4));
  const auto query = parse_query(question);
  const std::string text = answer_text(*query, kNoError, answer->records, 4096);
  const auto again = parse_answer(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->records, answer->records);
  const auto cut = parse_answer(answer_text(*query, kNoError, answer->records, 60));
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->truncated);
}

TEST(DnsMessage, malformed_answers_are_none_and_random_bytes_do_no_harm) {
  const std::string question = asks("example.com", kMx);
  for (const std::string& bad : {record(kA, "abc"), record(kCname, "\xc0\x50"), record(kMx, "\x01"),
                                 record(kSrv, word(1) + word(2)), https(word(4) + word(9) + "x"),
                                 record(kCname, wire("a") + "more").substr(0, 14)})
    EXPECT_FALSE(parse_answer(says(question, {bad})));
  std::mt19937 random(7);
  const std::string good = says(
      question, {record(kMx, word(10) + wire("m.example.com")), https(word(4) + word(4) + "abcd"),
                 record(kSrv, word(1) + word(2) + word(3) + wire("s.example.com")),
                 a("203.0.113.1"), record(kTxt, "\x03txt")});
  ASSERT_TRUE(parse_answer(good));
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    for (int k = 0; k < 4; ++k) text[random() % text.size()] = static_cast<char>(random());
    text.resize(random() % (text.size() + 1));
    if (const auto parsed = parse_answer(text)) refused_address(*parsed, {}, false);
    parse_query(text);
  }
}

TEST(DnsPolicy, by_name_and_type) {
  const struct {
    const char* name;
    uint16_t type;
    Fate fate;
  } cases[] = {
      {"example.com", kA, Fate::forward},
      {"example.com", kTxt, Fate::forward},
      {"_x._tcp.example.com", kSrv, Fate::forward},
      {"example.com", kMx, Fate::forward},
      {"example.com", kHttps, Fate::forward},
      {"example.com", kCname, Fate::forward},
      {"example.com", kAaaa, Fate::empty},
      {"example.com", 255, Fate::refused},  // ANY
      {"example.com", 252, Fate::refused},  // AXFR
      {"example.com", 2, Fate::refused},
      {"10.2.0.192.in-addr.arpa", kPtr, Fate::no_such_name},
      {"printer", kA, Fate::no_such_name},
      {"printer.local", kA, Fate::no_such_name},
      {"metadata.google.INTERNAL", kA, Fate::no_such_name},
      {"local", kA, Fate::no_such_name},
      {"a.localhost", kA, Fate::no_such_name},
      {"router.home.arpa", kA, Fate::no_such_name},
      {"notlocal.example", kA, Fate::forward},
      {"thelocal.se", kA, Fate::forward},
      {"x.mylocal", kA, Fate::forward},
  };
  for (const auto& c : cases)
    EXPECT_EQ(fate_of({wire(c.name), c.type}), c.fate) << c.name << " " << c.type;
}

TEST(DnsPolicy, an_answer_with_any_refused_address_is_refused) {
  net::Topology t;
  t.known = true;
  t.containers = {*net::parse_cidr("10.201.0.0/16")};
  t.blocked = {*net::parse_cidr("203.0.113.128/25")};
  const auto refused = [&](const std::vector<std::string>& records, bool allow_private = false) {
    const auto address =
        refused_address(*parse_answer(says(asks("example.com", kA), records)), t, allow_private);
    return address ? net::format(*address) : std::string();
  };
  EXPECT_EQ(refused({a("203.0.113.10"), a("8.8.8.8")}), "");
  EXPECT_EQ(refused({a("203.0.113.10"), a("10.20.0.5")}), "10.20.0.5");
  EXPECT_EQ(refused({a("203.0.113.10"), a("10.20.0.5")}, true), "");
  for (const char* never : {"127.0.0.1", "169.254.169.254", "100.100.100.200", "10.201.0.2",
                            "203.0.113.200", "0.0.0.0"})
    EXPECT_EQ(refused({a(never)}, true), never);
  EXPECT_EQ(refused({https(word(4) + word(8) + std::string("\x08\x08\x08\x08") +
                           std::string("\x0a\x14\x00\x05", 4))}),
            "10.20.0.5");
}

TEST(DnsUpstreams, are_those_of_resolv_conf) {
  const auto names = [](const char* text) {
    std::string all;
    for (const sockaddr_in& s : upstreams_in(text)) {
      std::array<char, 32> name{};
      all += std::string(inet_ntop(AF_INET, &s.sin_addr, name.data(), name.size())) + ":" +
             std::to_string(ntohs(s.sin_port)) + " ";
    }
    return all;
  };
  EXPECT_EQ(
      names("# x\nnameserver 192.0.2.53\nnameserver\t10.0.0.1 # y\nsearch a\nnameserver ::1\n"),
      "192.0.2.53:53 10.0.0.1:53 ");
  EXPECT_EQ(names("nameservers 1.2.3.4\n"), "127.0.0.1:53 ");
}

// Sandboxes' runs have the endpoints 10.201.0.2 and so on.
class DnsForwarder : public BrokerTest {
 protected:
  DnsForwarder() {
    options.topology = [] {
      net::Topology t;
      t.known = true;
      return t;
    };
    options.timing = {std::chrono::milliseconds(300), std::chrono::milliseconds(1500)};
    answer_with({a("203.0.113.10")});
  }
  ~DnsForwarder() override { forwarder.reset(); }

  // options.idle: how long those wait whom nobody answers.
  void open(std::vector<sockaddr_in> upstreams) {
    options.upstreams = std::move(upstreams);
    forwarder = std::make_unique<Forwarder>(registry, options);
    path = (folder.path() / "dns.sock").string();
    forwarder->listen_unix(path, 0600);
    forwarder->start();
  }
  void open() { open({resolver.address()}); }
  std::shared_ptr<runs::LiveRun> add(const std::string& endpoint,
                                     apis::NetworkMode mode = apis::NetworkMode::internet,
                                     bool allow_private = false) {
    runs::RunInfo info;
    info.ns = "default";
    info.name = "open";
    info.uid = "uid-" + endpoint;
    info.egress = {mode, {}, allow_private};
    auto live = std::make_shared<runs::LiveRun>(info, *store, clock);
    registry.add(live, endpoint);
    return live;
  }
  // As the relay asks; "" where there is no answer.
  std::string ask(const std::string& endpoint, const std::string& question, bool datagram = true) {
    const Fd c(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    path.copy(to.sun_path, sizeof to.sun_path - 1);
    EXPECT_EQ(::connect(c.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    std::string header("\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c", 16);
    if (!datagram) header[13] = '\x11';
    header += std::string("\x0a\xc9\x00\x03", 4);
    const net::Address address = *net::parse_address(endpoint);
    header.append(address.bytes.begin() + 12, address.bytes.end());
    header += std::string("\x30\x39\x00\x35", 4);
    write_all(c.get(), header + word(question.size()) + question);
    const std::string length = read_exactly(c.get(), 2);
    if (length.size() < 2) return "";
    return read_exactly(c.get(), static_cast<size_t>(static_cast<uint8_t>(length[0])) * 256 +
                                     static_cast<uint8_t>(length[1]));
  }
  static std::string read_exactly(int fd, size_t n) {
    std::string bytes;
    while (bytes.size() < n) {
      std::array<char, 4096> some;
      pollfd ready{fd, POLLIN, 0};
      if (::poll(&ready, 1, 20'000) != 1) break;
      const ssize_t got = ::recv(fd, some.data(), std::min(some.size(), n - bytes.size()), 0);
      if (got <= 0) break;
      bytes.append(some.data(), static_cast<size_t>(got));
    }
    return bytes;
  }
  // "rcode addresses…"
  std::string answer(const std::string& endpoint, const std::string& name, uint16_t type = kA) {
    const auto got = parse_answer(ask(endpoint, asks(name, type)));
    if (!got) return "none";
    std::string text = std::to_string(got->rcode);
    for (const Record& r : got->records) {
      std::array<char, 32> shown{};
      if (r.type == kA)
        text += std::string(" ") + inet_ntop(AF_INET, r.data.data(), shown.data(), shown.size());
    }
    return text;
  }
  std::vector<std::string> recorded(const runs::LiveRun& live) const {
    std::vector<std::string> lines;
    for (const store::TimelineRow& row : store->timeline_read(live.info().uid, 0, 10'000)) {
      const json::Value event = json::parse(row.json);
      lines.push_back(event.get_string("name") + " " +
                      (event.get_bool("allowed") ? "allowed" : event.get_string("error")));
    }
    return lines;
  }

  // What the resolver answers from now on; a thread of its own reads it.
  void answer_with(std::vector<std::string> wanted) {
    std::lock_guard lock(records_mutex);
    records = std::move(wanted);
  }

  std::mutex records_mutex;
  std::vector<std::string> records;
  FakeResolver resolver{[this](const std::string& question, bool) {
    std::lock_guard lock(records_mutex);
    return says(question, records);
  }};
  TempDir folder;
  std::string path;
  ForwarderOptions options;
  std::unique_ptr<Forwarder> forwarder;
};

TEST_F(DnsForwarder, answers_runs_with_internet_access_and_nobody_else) {
  options.idle = std::chrono::milliseconds(700);
  add("10.201.0.2");
  add("10.201.0.10", apis::NetworkMode::none);
  add("10.201.0.18", apis::NetworkMode::allowed_domains);
  open();
  EXPECT_EQ(answer("10.201.0.2", "example.com"), "0 203.0.113.10");
  EXPECT_EQ(resolver.questions(), 1);
  EXPECT_EQ(answer("10.201.0.10", "example.com"), "none");
  EXPECT_EQ(answer("10.201.0.18", "example.com"), "none");
  EXPECT_EQ(answer("10.201.0.99", "example.com"), "none") << "no run has it";
  registry.remove("uid-10.201.0.2");
  EXPECT_EQ(answer("10.201.0.2", "example.com"), "none") << "the run is over";
  EXPECT_EQ(resolver.questions(), 1);
}

TEST_F(DnsForwarder, refused_addresses_stay_away_and_are_on_the_timeline) {
  const auto strict = add("10.201.0.2");
  const auto lax = add("10.201.0.10", apis::NetworkMode::internet, true);
  answer_with({a("203.0.113.10"), a("10.20.0.5")});
  open();
  EXPECT_EQ(answer("10.201.0.2", "mixed.example.com"), "5");
  EXPECT_EQ(answer("10.201.0.10", "mixed.example.com"), "0 203.0.113.10 10.20.0.5");
  EXPECT_EQ(answer("10.201.0.2", "printer.local"), "3");
  EXPECT_EQ(answer("10.201.0.2", "mixed.example.com", kAaaa), "0");
  forwarder.reset();  // what waits to be written is written
  EXPECT_EQ(recorded(*strict),
            std::vector<std::string>{"dns mixed.example.com it has the address 10.20.0.5"});
  EXPECT_EQ(recorded(*lax), std::vector<std::string>{"dns mixed.example.com allowed"});
}

TEST_F(DnsForwarder, a_silent_upstream_is_followed_by_the_next_and_then_by_a_failure) {
  FakeResolver silent([](const std::string&, bool) { return std::string(); });
  add("10.201.0.2");
  open({silent.address(), resolver.address()});
  EXPECT_EQ(answer("10.201.0.2", "example.com"), "0 203.0.113.10");
  EXPECT_EQ(silent.questions(), 1);
  forwarder.reset();
  open({silent.address()});
  EXPECT_EQ(answer("10.201.0.2", "example.com"), "2");
}

TEST_F(DnsForwarder, an_answer_that_was_not_asked_for_is_not_taken) {
  FakeResolver liar([](const std::string& question, bool) {
    std::string other = says(question, {a("198.51.100.7")});
    other[0] = static_cast<char>(other[0] ^ 1);
    return other;
  });
  add("10.201.0.2");
  open({liar.address()});
  EXPECT_EQ(answer("10.201.0.2", "example.com"), "2");
}

TEST_F(DnsForwarder, what_is_too_long_for_a_datagram_is_asked_by_tcp_and_cut_for_the_client) {
  std::vector<std::string> many;
  for (int i = 0; i < 60; ++i) many.push_back(a("203.0.113.10"));
  FakeResolver big([&](const std::string& question, bool tcp) {
    return tcp ? says(question, many) : says(question, {}, 0x8380);
  });
  add("10.201.0.2");
  open({big.address()});
  const auto by_udp = parse_answer(ask("10.201.0.2", asks("example.com", kA)));
  ASSERT_TRUE(by_udp);
  EXPECT_TRUE(by_udp->truncated);
  const auto by_tcp = parse_answer(ask("10.201.0.2", asks("example.com", kA), false));
  ASSERT_TRUE(by_tcp);
  EXPECT_EQ(by_tcp->records.size(), 60U);
}

TEST_F(DnsForwarder, one_run_has_its_share_and_no_more) {
  options.questions_a_second = 3;
  add("10.201.0.2");
  add("10.201.0.10");
  open();
  int answered = 0, refused = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string got = answer("10.201.0.2", "example.com");
    (got == "5" ? refused : answered)++;
  }
  EXPECT_GE(answered, 3);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(answer("10.201.0.10", "example.com"), "0 203.0.113.10");
}

TEST_F(DnsForwarder, a_sandboxs_own_sockets_are_served_until_they_are_dropped) {
  add("netns:1");
  open();
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Fd udp(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  Fd tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(udp.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::bind(tcp.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::listen(tcp.get(), 4), 0);
  sockaddr_in udp_at{}, tcp_at{};
  socklen_t n = sizeof udp_at;
  ::getsockname(udp.get(), reinterpret_cast<sockaddr*>(&udp_at), &n);
  ::getsockname(tcp.get(), reinterpret_cast<sockaddr*>(&tcp_at), &n);
  auto held = forwarder->adopt(std::move(udp), std::move(tcp), "netns:1");

  const std::string question = asks("example.com", kA);
  std::array<char, 512> bytes;
  const Fd c(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(c.get(), reinterpret_cast<sockaddr*>(&udp_at), sizeof udp_at), 0);
  const auto ask_again = [&] {
    ::send(c.get(), question.data(), question.size(), MSG_NOSIGNAL);
    pollfd p{c.get(), POLLIN, 0};
    if (::poll(&p, 1, 5000) != 1) return ssize_t{-2};
    return ::recv(c.get(), bytes.data(), bytes.size(), 0);
  };
  ssize_t got = ask_again();
  ASSERT_GT(got, 0);
  EXPECT_EQ(parse_answer({bytes.data(), static_cast<size_t>(got)})->records.size(), 1U);
  const Fd stream(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(stream.get(), reinterpret_cast<sockaddr*>(&tcp_at), sizeof tcp_at), 0);
  const std::string framed = word(question.size()) + question;
  ::send(stream.get(), framed.data(), framed.size(), MSG_NOSIGNAL);
  got = ::recv(stream.get(), bytes.data(), bytes.size(), 0);
  ASSERT_GT(got, 2);
  held.reset();
  for (int i = 0; i < 100 && got != -1; ++i) got = ask_again();
  EXPECT_EQ(got, -1) << "the port is closed";
}

}  // namespace
}  // namespace umpteenth::broker::dns
