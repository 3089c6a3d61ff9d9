#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "base/http/server.h"
#include "tests/support/raw_peer.h"

namespace umpteenth::http {
namespace {

using namespace std::chrono_literals;
using test::becomes;
using test::RawPeer;

const std::string kGet = "GET /watch HTTP/1.1\r\nHost: here\r\n\r\n";

class HttpStream : public testing::Test {
 protected:
  HttpStream() {
    site.handle = [this](const Request& request) {
      if (request.path != "/watch") return Response::text(200, "plain");
      Response response = Response::json(200, first);
      response.stream = stream;
      return response;
    };
  }
  int serve() {
    server = std::make_unique<Server>(ListenOn{.host = "127.0.0.1",
                                               .port = 0,
                                               .unix_path = "",
                                               .unix_mode = 0600,
                                               .tls = std::nullopt,
                                               .proxy_v2 = false},
                                      limits, site);
    server->start();
    return server->port();
  }

  Limits limits;
  Site site;
  std::string first;
  std::shared_ptr<Stream> stream = std::make_shared<Stream>(64U << 10);
  std::unique_ptr<Server> server;
};

TEST_F(HttpStream, pushes_arrive_as_they_come_and_the_connection_lives_on) {
  first = "head;";
  RawPeer peer(serve());
  peer.send(kGet);
  const std::string head = peer.read_until("\r\n\r\n");
  EXPECT_NE(head.find("Transfer-Encoding: chunked"), std::string::npos);
  EXPECT_EQ(head.find("Content-Length"), std::string::npos);
  EXPECT_EQ(peer.read_until("5\r\nhead;\r\n"), "5\r\nhead;\r\n");
  EXPECT_TRUE(stream->push("one"));
  EXPECT_EQ(peer.read_until("3\r\none\r\n"), "3\r\none\r\n");
  EXPECT_TRUE(stream->push(std::string(20, 'x')));
  EXPECT_EQ(peer.read_until("\r\n"), "14\r\n");
  EXPECT_EQ(peer.read_until("\r\n"), std::string(20, 'x') + "\r\n");
  std::atomic<bool> ended{false};
  stream->on_end([&] { ended = true; });
  stream->close();
  EXPECT_EQ(peer.read_until("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_TRUE(becomes([&] { return ended.load(); }));
  EXPECT_FALSE(stream->push("late"));
  peer.send("GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_NE(peer.read_response().find("plain"), std::string::npos);
}

TEST_F(HttpStream, a_request_sent_during_a_stream_is_answered_after_it) {
  RawPeer peer(serve());
  peer.send(kGet);
  peer.read_until("\r\n\r\n");
  peer.send("GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(stream->push("one"));
  peer.read_until("3\r\none\r\n");
  stream->close();
  peer.read_until("0\r\n\r\n");
  EXPECT_NE(peer.read_response().find("plain"), std::string::npos);
}

TEST_F(HttpStream, a_client_that_leaves_a_silent_stream_is_noticed) {
  std::atomic<int> ended{0};
  stream->on_end([&] { ++ended; });
  RawPeer peer(serve());
  peer.send(kGet);
  peer.read_until("\r\n\r\n");
  peer.hang_up();
  EXPECT_TRUE(becomes([&] { return ended == 1; }));
  EXPECT_FALSE(stream->push("x"));
  EXPECT_FALSE(stream->overflowed());
  EXPECT_TRUE(becomes([&] { return server->stats().connections == 0; }));
  stream->on_end([&] { ended += 10; });
  EXPECT_EQ(ended, 11);  // at once
}

TEST_F(HttpStream, a_slow_reader_overflows_and_is_cut_without_a_final_chunk) {
  RawPeer peer(serve());
  peer.send(kGet);
  peer.read_until("\r\n\r\n");
  // The kernel's buffers take some megabytes before the queue begins to fill.
  size_t pushed = 0;
  while (stream->push(std::string(16U << 10, 'x')) && pushed < 64U << 20) pushed += 16U << 10;
  EXPECT_LT(pushed, 64U << 20);
  EXPECT_TRUE(stream->overflowed());
  EXPECT_TRUE(stream->closed());
  std::string all;
  try {
    all = peer.read_all();
  } catch (const Error& e) {  // a reset is as good an end
    EXPECT_EQ(e.code(), Code::unavailable);
  }
  EXPECT_FALSE(all.ends_with("0\r\n\r\n"));
  EXPECT_TRUE(becomes([&] { return server->stats().connections == 0; }));
}

TEST_F(HttpStream, a_reader_that_stops_is_cut_at_the_write_limit) {
  limits.write = 100ms;
  stream = std::make_shared<Stream>(64U << 20);
  std::atomic<bool> ended{false};
  stream->on_end([&] { ended = true; });
  RawPeer peer(serve());
  peer.send(kGet);
  peer.read_until("\r\n\r\n");
  EXPECT_TRUE(stream->push(std::string(32U << 20, 'x')));
  EXPECT_TRUE(becomes([&] { return ended.load(); }));
  EXPECT_TRUE(becomes([&] { return server->stats().connections == 0; }));
}

TEST_F(HttpStream, push_wait_feeds_a_download_of_any_size) {
  RawPeer peer(serve());
  peer.send("GET /watch HTTP/1.0\r\nHost: h\r\n\r\n");  // 1.0: no chunks, the end is the end
  std::jthread producer([&] {
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(stream->push_wait(std::string(50'000, 'd')));
    stream->close();
  });
  peer.read_until("\r\n\r\n");
  EXPECT_EQ(peer.read_all().size(), 10'000'000U);
}

TEST_F(HttpStream, push_wait_ends_when_the_client_leaves) {
  RawPeer peer(serve());
  peer.send(kGet);
  peer.read_until("\r\n\r\n");
  std::atomic<bool> refused{false};
  std::jthread producer([&] {
    while (stream->push_wait(std::string(50'000, 'd'))) {
    }
    refused = true;
  });
  peer.hang_up();
  EXPECT_TRUE(becomes([&] { return refused.load(); }));
}

TEST_F(HttpStream, abort_cuts) {
  RawPeer peer(serve());
  peer.send(kGet);
  peer.read_until("\r\n\r\n");
  stream->abort();
  EXPECT_EQ(peer.read_all(), "");
}

TEST_F(HttpStream, head_and_bodiless_answers_end_the_stream) {
  std::atomic<bool> ended{false};
  stream->on_end([&] { ended = true; });
  RawPeer peer(serve());
  peer.send("HEAD /watch HTTP/1.1\r\nHost: h\r\n\r\n");
  peer.read_until("\r\n\r\n");
  EXPECT_TRUE(becomes([&] { return ended.load(); }));
}

TEST_F(HttpStream, stop_ends_streams_properly) {
  RawPeer peer(serve());
  peer.send(kGet);
  peer.read_until("\r\n\r\n");
  EXPECT_TRUE(stream->push("last"));
  peer.read_until("last\r\n");
  server->stop(2s);
  EXPECT_EQ(peer.read_all(), "0\r\n\r\n");
  EXPECT_TRUE(stream->closed());
}

TEST_F(HttpStream, many_streams_are_no_threads) {
  limits.handler_threads = 2;
  limits.connections = limits.connections_per_peer = 400;
  std::mutex mutex;
  std::vector<std::shared_ptr<Stream>> streams;
  site.handle = [&](const Request&) {
    Response response = Response::text(200, "");
    response.stream = std::make_shared<Stream>();
    const std::lock_guard lock(mutex);
    streams.push_back(response.stream);
    return response;
  };
  const int port = serve();
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 300; ++i) {
    peers.push_back(std::make_unique<RawPeer>(port));
    peers.back()->send(kGet);
  }
  for (auto& peer : peers) peer->read_until("\r\n\r\n");
  for (auto& one : streams) EXPECT_TRUE(one->push("event"));
  for (auto& peer : peers) EXPECT_EQ(peer->read_until("event\r\n"), "5\r\nevent\r\n");
  for (auto& one : streams) one->close();
  for (auto& peer : peers) EXPECT_EQ(peer->read_until("0\r\n\r\n"), "0\r\n\r\n");
}

}  // namespace
}  // namespace umpteenth::http
