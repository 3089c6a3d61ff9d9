// The client against a server on the loopback that misbehaves in every way an API may.
#include "models/openai.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/loopback_server.h"

namespace umpteenth::models {
namespace {

using support::LoopbackServer;
using Connection = LoopbackServer::Connection;

constexpr char kHead[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

std::string event(std::string_view json) { return "data: " + std::string(json) + "\n\n"; }
std::string delta(std::string_view json) {
  return event(R"({"choices":[{"delta":)" + std::string(json) + "}]}");
}
std::string ending(std::string_view reason) {
  return event(R"({"choices":[{"delta":{},"finish_reason":")" + std::string(reason) + "\"}]}") +
         event("[DONE]");
}
std::string status(std::string_view line, std::string_view headers, std::string_view body) {
  return "HTTP/1.1 " + std::string(line) + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + std::string(headers) + "\r\n" + std::string(body);
}

OpenAIOptions options(const LoopbackServer& server) {
  OpenAIOptions made;
  made.base_url = server.url("/v1/");
  made.api_key = "sk-test";
  return made;
}

Answer ask(const LoopbackServer& server, std::stop_token stop = {}) {
  Prompt prompt;
  prompt.model = "m";
  return OpenAIClient(options(server), {}).complete(prompt, {}, std::move(stop));
}

ModelError failure(const std::function<void(Connection&)>& serve) {
  LoopbackServer server(serve);
  try {
    ask(server);
  } catch (const ModelError& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return {Failure::permanent, "", false};
}
ModelError failure(std::string bytes) {
  return failure([bytes = std::move(bytes)](Connection& c) { c.send(bytes); });
}

TEST(OpenAI, asks_as_the_api_wants_and_puts_the_answer_together) {
  const std::string body =
      delta(R"({"content":"Grüße"})") +
      delta(
          R"({"tool_calls":[{"index":0,"id":"c1","function":{"name":"bash","arguments":"{\"a\""}}]})") +
      delta(R"({"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]})") +
      event(R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}})") +
      ending("tool_calls");
  LoopbackServer server([&](Connection& c) {
    c.send(kHead);
    for (char byte : body) c.send(std::string_view(&byte, 1));  // a packet a byte
  });
  const Answer answer = ask(server);
  EXPECT_EQ(answer.text(), "Grüße");
  EXPECT_EQ(answer.tool_calls().at(0).arguments.get_int("a"), 1);
  EXPECT_EQ(answer.usage.input_tokens, 9);
  const std::string request = server.requests().at(0);
  EXPECT_TRUE(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n")) << request;
  EXPECT_NE(request.find("Authorization: Bearer sk-test\r\n"), std::string::npos);
  EXPECT_NE(request.find(R"("stream":true)"), std::string::npos);
}

TEST(OpenAI, without_a_key_no_authorization_is_sent) {
  LoopbackServer server([](Connection& c) { c.send(kHead + ending("stop")); });
  OpenAIOptions open = options(server);
  open.api_key = "";
  OpenAIClient(open, {}).complete({}, {}, {});
  EXPECT_EQ(server.requests().at(0).find("Authorization"), std::string::npos);
}

TEST(OpenAI, a_rate_limit_is_transient_and_says_when_to_come_back) {
  const ModelError e = failure(status("429 Too Many Requests", "Retry-After: 17\r\n",
                                      R"({"error":{"message":"slow down"}})"));
  EXPECT_EQ(e.failure(), Failure::transient);
  EXPECT_EQ(e.retry_after_seconds(), 17);
  EXPECT_EQ(e.message(), "the model API answered 429: slow down");
  EXPECT_FALSE(e.maybe_billed());
}

TEST(OpenAI, a_retry_after_that_is_no_number_of_seconds_is_left_out) {
  const ModelError e =
      failure(status("503 x", "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n", ""));
  EXPECT_EQ(e.failure(), Failure::transient);
  EXPECT_FALSE(e.retry_after_seconds().has_value());
}

TEST(OpenAI, statuses_are_classified) {
  EXPECT_EQ(failure(status("529 Overloaded", "", "")).failure(), Failure::transient);
  EXPECT_EQ(failure(status("500 x", "", "<html>")).failure(), Failure::transient);
  EXPECT_EQ(failure(status("401 x", "", "{}")).failure(), Failure::permanent);
  EXPECT_EQ(
      failure(status("400 x", "", R"({"error":{"code":"context_length_exceeded"}})")).failure(),
      Failure::context_overflow);
  EXPECT_EQ(failure(status("429 x", "", R"({"error":{"type":"insufficient_quota"}})")).failure(),
            Failure::quota);
  EXPECT_EQ(failure(status("302 Found", "Location: /elsewhere\r\n", "")).failure(),
            Failure::permanent);
}

TEST(OpenAI, a_stream_that_is_cut_is_transient_and_may_be_billed) {
  const ModelError ended = failure(kHead + delta(R"({"content":"half"})"));
  EXPECT_EQ(ended.failure(), Failure::transient);
  EXPECT_TRUE(ended.maybe_billed());
  const ModelError chunk =
      failure("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\ndata: {\"choices\"");
  EXPECT_EQ(chunk.failure(), Failure::transient);
  EXPECT_EQ(failure("").failure(), Failure::transient);
}

TEST(OpenAI, garbage_is_transient) {
  EXPECT_EQ(failure(kHead + event("nonsense")).failure(), Failure::transient);
  EXPECT_EQ(failure("SSH-2.0-OpenSSH\r\n\r\n").failure(), Failure::transient);
}

TEST(OpenAI, an_endless_answer_is_cut_at_four_mib) {
  std::atomic<size_t> sent{0};
  const ModelError e = failure([&](Connection& c) {
    const std::string piece = delta(R"({"content":")" + std::string(60'000, 'x') + "\"}");
    c.send(kHead);
    while (c.send(piece)) sent += piece.size();
  });
  EXPECT_EQ(e.failure(), Failure::permanent);
  EXPECT_EQ(e.message(), "the answer is larger than 4 MiB");
  EXPECT_LT(sent, 32U << 20);  // what socket buffers took on top
}

TEST(OpenAI, an_endless_line_and_endless_comments_end_too) {
  for (const std::string& piece :
       {std::string(100'000, 'x'), ": " + std::string(99'997, 'x') + "\n"}) {
    const ModelError e = failure([&](Connection& c) {
      c.send(std::string(kHead) + (piece[0] == 'x' ? "data: " : ""));
      while (c.send(piece)) continue;
    });
    EXPECT_EQ(e.failure(), Failure::permanent) << e.message();
  }
}

TEST(OpenAI, five_mib_in_one_event_and_129_calls_are_refused) {
  EXPECT_EQ(failure(kHead + delta(R"({"content":")" + std::string(5U << 20, 'x') + "\"}") +
                    ending("stop"))
                .message(),
            "the answer is larger than 4 MiB");
  std::string calls = kHead;
  for (int i = 0; i < 129; ++i)
    calls += delta(R"({"tool_calls":[{"index":)" + std::to_string(i) +
                   R"(,"id":"c","function":{"name":"bash","arguments":"{}"}}]})");
  EXPECT_EQ(failure(calls + ending("tool_calls")).message(),
            "the answer makes more tool calls than any model makes in one call");
}

TEST(OpenAI, a_slow_first_byte_is_a_timeout_that_may_be_tried_again) {
  LoopbackServer server([](Connection& c) { EXPECT_TRUE(c.wait_for_hang_up()); });
  OpenAIOptions hasty = options(server);
  hasty.connect_timeout = Duration(50);
  hasty.idle_timeout = Duration(50);
  try {
    OpenAIClient(hasty, {}).complete({}, {}, {});
    FAIL() << "no error";
  } catch (const ModelError& e) {
    EXPECT_EQ(e.failure(), Failure::transient) << e.message();
    EXPECT_TRUE(e.maybe_billed());
  }
}

TEST(OpenAI, a_cancel_in_the_middle_of_the_stream_ends_the_call_at_once) {
  std::stop_source stop;
  std::atomic<bool> hung_up{false};
  {
    LoopbackServer server([&](Connection& c) {
      c.send(kHead + delta(R"({"content":"half"})"));
      hung_up = c.wait_for_hang_up();
    });
    const auto on_delta = [&](const Delta&) { stop.request_stop(); };
    try {
      OpenAIClient(options(server), {}).complete({}, on_delta, stop.get_token());
      FAIL() << "no error";
    } catch (const ModelError& e) {
      EXPECT_EQ(e.message(), "the call was stopped");
    }
  }
  EXPECT_TRUE(hung_up);
}

TEST(OpenAI, nobody_listening_is_transient_and_a_refused_address_is_not) {
  std::string url;
  {
    LoopbackServer closed([](Connection&) {});
    url = closed.url("/v1");
  }
  OpenAIOptions made;
  made.base_url = url;
  const auto kind = [&](OutboundPolicy policy) {
    try {
      OpenAIClient(made, std::move(policy)).complete({}, {}, {});
    } catch (const ModelError& e) {
      return std::pair{e.failure(), e.message()};
    }
    return std::pair{Failure::quota, std::string("no error")};
  };
  EXPECT_EQ(kind({}).first, Failure::transient) << kind({}).second;
  OutboundPolicy strict;
  strict.allow_private = false;
  EXPECT_EQ(kind(strict).first, Failure::permanent) << kind(strict).second;
}

}  // namespace
}  // namespace umpteenth::models
