#include "base/http/message.h"

#include <gtest/gtest.h>

#include "base/http/response_text.h"

namespace umpteenth::http {
namespace {

TEST(Headers, names_compare_without_case_and_repeats_are_kept) {
  Headers headers{{"Accept", "a"}, {"X", "1"}};
  headers.add("accept", "b");
  EXPECT_EQ(headers.get("ACCEPT"), "a");
  EXPECT_EQ(headers.all("accept"), (std::vector<std::string>{"a", "b"}));
  headers.set("Accept", "c");
  EXPECT_EQ(headers.all("accept"), (std::vector<std::string>{"c"}));
  EXPECT_FALSE(headers.has("Accep"));
  EXPECT_EQ(headers.get("none"), "");
}

TEST(Request, cookies_and_parameters_are_found_by_whole_names) {
  Request request;
  request.headers.add("Cookie", "session=abc; xsession=no;  b=1=2");
  EXPECT_EQ(request.cookie("session"), "abc");
  EXPECT_EQ(request.cookie("b"), "1=2");
  EXPECT_EQ(request.cookie("sess"), "");
  request.query = parse_query("a=1&a=2&flag&sp=x+y%20z&=e&&%zz=%4");
  EXPECT_EQ(request.param("a"), "1");
  EXPECT_TRUE(request.has_param("flag"));
  EXPECT_EQ(request.param("sp"), "x y z");
  EXPECT_EQ(request.param("%zz"), "%4");
}

TEST(Percent, round_trips_every_byte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(percent_decode(percent_encode(all), false), all);
  EXPECT_EQ(percent_encode("a/b c~"), "a%2Fb%20c~");
  EXPECT_EQ(percent_decode("a+b%2", false), "a+b%2");
}

TEST(ResponseText, framing_is_ours_alone) {
  Response response = Response::text(200, "abc");
  response.headers.add("Content-Length", "99");
  response.headers.add("Transfer-Encoding", "chunked");
  response.headers.add("Connection", "keep-alive");
  EXPECT_EQ(response_head(response,
                          {.head_request = false, .chunked = false, .close = true, .date = "D"}),
            "HTTP/1.1 200 OK\r\nDate: D\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Content-Length: 3\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(response_head(Response{.status = 204, .headers = {}, .body = "", .stream = nullptr},
                          {.head_request = false, .chunked = false, .close = false, .date = "D"}),
            "HTTP/1.1 204 No Content\r\nDate: D\r\n\r\n");
}

TEST(ResponseText, dates_and_chunk_sizes_have_their_form) {
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(chunk_line(255), "ff\r\n");
}

TEST(Stream, on_end_is_called_once_for_each_and_without_a_server_nothing_is_lost) {
  Stream stream(10);
  EXPECT_TRUE(stream.push("12345"));
  EXPECT_TRUE(stream.push("67890"));
  EXPECT_EQ(stream.drain().chunks, (std::vector<std::string>{"12345", "67890"}));
  EXPECT_TRUE(stream.push("x"));
  int readable = 0, ended = 0;
  stream.on_readable([&] { ++readable; });
  EXPECT_EQ(readable, 1);  // something waits already
  EXPECT_TRUE(stream.push("y"));
  EXPECT_EQ(readable, 1);  // told once until it is drained
  stream.drain();
  EXPECT_TRUE(stream.push("z"));
  EXPECT_EQ(readable, 2);
  stream.on_end([&] { ++ended; });
  stream.peer_gone();
  stream.peer_gone();
  EXPECT_EQ(ended, 1);
  EXPECT_FALSE(stream.push("late"));
}

}  // namespace
}  // namespace umpteenth::http
