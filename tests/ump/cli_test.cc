#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <mutex>

#include "base/json.h"
#include "tests/ump/support.h"

namespace umpteenth {
namespace {

// Answers every connection with one canned text and keeps what was asked.
class ScriptedBroker {
 public:
  ScriptedBroker() {
    listener_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        listen(listener_.get(), 16) != 0)
      abort();
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { serve(); });
  }
  ~ScriptedBroker() { shutdown(listener_.get(), SHUT_RDWR); }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void answer(int status, const std::string& body) {
    answer_raw("HTTP/1.1 " + std::to_string(status) +
               " x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  void answer_raw(std::string text) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(text);
  }
  std::string head() const {
    const std::lock_guard lock(mutex_);
    return head_;
  }
  json::Value body() const {
    const std::lock_guard lock(mutex_);
    return json::parse(body_);
  }
  int requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (true) {
      const Fd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) return;
      std::string request;
      size_t wanted = std::string::npos;
      char bytes[65536];
      while (request.size() < wanted) {
        const ssize_t n = recv(client.get(), bytes, sizeof bytes, 0);
        if (n <= 0) break;
        request.append(bytes, static_cast<size_t>(n));
        const size_t end = request.find("\r\n\r\n");
        if (wanted != std::string::npos || end == std::string::npos) continue;
        const size_t length = request.find("Content-Length: ");
        wanted = end + 4;
        if (length < end) wanted += std::stoul(request.substr(length + 16));
      }
      const std::lock_guard lock(mutex_);
      const size_t end = request.find("\r\n\r\n");
      head_ = request.substr(0, end);
      body_ = request.substr(end + 4);
      ++requests_;
      send(client.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
    }
  }

  Fd listener_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::string answer_, head_, body_;
  int requests_ = 0;
  std::jthread thread_;
};

class UmpCli : public testing::Test {
 protected:
  CommandResult run(std::vector<std::string> arguments, std::string stdin_bytes = {}) {
    return ump(std::move(arguments), std::move(stdin_bytes),
               {"UMP_BROKER_URL=http://" + broker_.address(), "UMP_TOKEN=secret-token"});
  }
  ScriptedBroker broker_;
};

TEST_F(UmpCli, usage_errors_come_before_the_broker) {
  const std::string long_tokens = "16001";
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{},
                                             {"nonsense"},
                                             {"state"},
                                             {"state", "get"},
                                             {"state", "get", ""},
                                             {"state", "get", "a", "b"},
                                             {"state", "set"},
                                             {"state", "set", "a", "b", "c"},
                                             {"state", "list", "x"},
                                             {"state", "remove", "x"},
                                             {"output"},
                                             {"output", "get", "k"},
                                             {"output", "set"},
                                             {"output", "set", "k", "v", "w"},
                                             {"output", "set", "k", "\xff"},
                                             {"step"},
                                             {"step", ""},
                                             {"summary", "a", "b"},
                                             {"fail", "\xff"},
                                             {"llm", "--model", "best", "hi"},
                                             {"llm", "--max-tokens", "0", "hi"},
                                             {"llm", "--max-tokens", long_tokens, "hi"},
                                             {"llm", "--max-tokens", "5x", "hi"},
                                             {"llm", "--schema", "/no/such/file", "hi"},
                                             {"llm", "--schema", "/etc/passwd", "hi"},
                                             {"llm", "--unknown", "hi"},
                                             {"llm", "one", "two"},
                                             {"llm", "--model"},
                                             {"llm"},
                                             {"connect"},
                                             {"connect", "host"},
                                             {"connect", "host", "0"},
                                             {"connect", "host", "65536"},
                                             {"connect", "ho st", "22"},
                                             {"connect", "host:1", "22"},
                                             {"connect", "", "22"},
                                             {"help", "me"}}) {
    // Neither variable is set: an error about them would show that the broker was looked for.
    const CommandResult result = ump(bad);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_TRUE(result.err.starts_with("ump: ")) << result.err;
  }
  EXPECT_EQ(broker_.requests(), 0);
}

TEST_F(UmpCli, says_where_it_works) {
  const CommandResult result = ump({"step", "one"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err,
            "ump: UMP_BROKER_URL and UMP_TOKEN are not set; ump only works inside an Umpteenth "
            "sandbox\n");
  const CommandResult bad = ump({"step", "one"}, "", {"UMP_BROKER_URL=ftp://x", "UMP_TOKEN=t"});
  EXPECT_EQ(bad.err, "ump: UMP_BROKER_URL is no http://HOST:PORT\n");
  const CommandResult unknown =
      ump({"step", "one"}, "", {"UMP_BROKER_URL=http://no-such-name:8081", "UMP_TOKEN=t"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_EQ(unknown.err, "ump: cannot find the address of no-such-name in /etc/hosts\n");
}

TEST_F(UmpCli, help_hides_what_is_not_for_jobs) {
  EXPECT_EQ(ump({"help"}).out.find("relay"), std::string::npos);
  EXPECT_NE(ump({"help", "--all"}).out.find("relay"), std::string::npos);
  EXPECT_NE(ump({"version"}).out.find(UMPTEENTH_VERSION), std::string::npos);
  EXPECT_NE(ump({"state", "--help"}).out.find("ump state get KEY"), std::string::npos);
}

TEST_F(UmpCli, sends_the_token_and_takes_both_forms_of_the_address) {
  broker_.answer(204, "");
  EXPECT_EQ(run({"step", "fetch", "the", "page"}).exit_code, 0);
  EXPECT_TRUE(broker_.head().starts_with("POST /v1/step HTTP/1.1\r\n")) << broker_.head();
  EXPECT_NE(broker_.head().find("Host: " + broker_.address()), std::string::npos);
  EXPECT_NE(broker_.head().find("Authorization: Bearer secret-token"), std::string::npos);
  EXPECT_EQ(broker_.body(), json::Value::object({{"name", "fetch the page"}}));
  const CommandResult userinfo =
      ump({"step", "x"}, "", {"UMP_BROKER_URL=http://ump:in-the-url@" + broker_.address()});
  EXPECT_EQ(userinfo.exit_code, 0) << userinfo.err;
  EXPECT_NE(broker_.head().find("Authorization: Bearer in-the-url"), std::string::npos);
}

TEST_F(UmpCli, finds_the_name_in_the_hosts_file) {
  broker_.answer(204, "");
  const std::string port = broker_.address().substr(broker_.address().find(':'));
  const CommandResult result =
      ump({"step", "x"}, "", {"UMP_BROKER_URL=http://localhost" + port, "UMP_TOKEN=t"});
  if (read_file("/etc/hosts").find("127.0.0.1") == std::string::npos)
    GTEST_SKIP() << "no 127.0.0.1 in /etc/hosts";
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(broker_.head().find("Host: localhost" + port), std::string::npos);
}

TEST_F(UmpCli, state_is_read_and_written) {
  broker_.answer(200, R"({"value":"grün\nzwei"})");
  EXPECT_EQ(run({"state", "get", "a key/ü?"}).out, "grün\nzwei\n");
  EXPECT_TRUE(broker_.head().starts_with("GET /v1/state/a%20key/%C3%BC%3F HTTP/1.1"))
      << broker_.head();
  broker_.answer(204, "");
  EXPECT_EQ(run({"state", "set", "k", "-"}, "from \"stdin\"\n\n").exit_code, 0);
  EXPECT_TRUE(broker_.head().starts_with("PUT /v1/state/k HTTP/1.1")) << broker_.head();
  EXPECT_EQ(broker_.body(), json::Value::object({{"value", "from \"stdin\""}}));
  EXPECT_EQ(run({"state", "set", "k"}, "no argument\n").exit_code, 0);
  EXPECT_EQ(broker_.body(), json::Value::object({{"value", "no argument"}}));
  broker_.answer(200, R"({"a":"1"})");
  EXPECT_EQ(run({"state", "list"}).out, "{\"a\":\"1\"}\n");
}

TEST_F(UmpCli, a_missing_state_key_prints_nothing_and_exits_1) {
  broker_.answer(404, R"({"code":"not_found","message":"state key \"k\" not found"})");
  const CommandResult result = run({"state", "get", "k"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out + result.err, "");
}

TEST_F(UmpCli, an_output_that_is_json_stays_json) {
  broker_.answer(204, "");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"3", "3"},
      {"[1, {\"a\": null}]", "[1,{\"a\":null}]"},
      {"true", "true"},
      {"\"x\"", "\"x\""},
      {"hello", "\"hello\""},
      {"{broken", "\"{broken\""},
      {"01", "\"01\""},
      {"", "\"\""},
      {"NaN", "\"NaN\""},
      {"1 2", "\"1 2\""}};
  for (const auto& [value, json] : cases) {
    EXPECT_EQ(run({"output", "set", "k", value}).exit_code, 0);
    EXPECT_EQ(broker_.body().dump(), "{\"key\":\"k\",\"value\":" + json + "}") << value;
  }
  EXPECT_EQ(run({"output", "set", "k"}, "{\"n\":\n 3}\n").exit_code, 0);
  EXPECT_EQ(broker_.body().dump(), R"({"key":"k","value":{"n":3}})");
}

TEST_F(UmpCli, deep_json_does_not_break_it) {
  broker_.answer(422, R"({"code":"invalid","message":"nested deeper than 64 levels"})");
  const CommandResult result =
      run({"output", "set", "k", "-"}, std::string(1'000'000, '[') + std::string(1'000'000, ']'));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "ump: nested deeper than 64 levels\n");
}

TEST_F(UmpCli, fail_always_exits_1) {
  broker_.answer(204, "");
  EXPECT_EQ(run({"fail"}).exit_code, 1);
  EXPECT_EQ(broker_.body(), json::Value::object({{"reason", "the script reported a failure"}}));
  EXPECT_EQ(run({"fail", "no", "data"}).exit_code, 1);
  EXPECT_EQ(broker_.body(), json::Value::object({{"reason", "no data"}}));
}

TEST_F(UmpCli, summary_takes_text_or_stdin) {
  broker_.answer(204, "");
  EXPECT_EQ(run({"summary"}, "all\nwell\r\n").exit_code, 0);
  EXPECT_EQ(broker_.body(), json::Value::object({{"summary", "all\nwell"}}));
}

TEST_F(UmpCli, llm_prints_text_or_indented_json) {
  broker_.answer(200, R"({"text":"an <answer>","usage":{"inputTokens":1}})");
  const CommandResult text =
      run({"llm", "--model", "agent", "--system", "be brief", "--max-tokens", "50", "why?"});
  EXPECT_EQ(text.out, "an <answer>\n");
  EXPECT_EQ(
      broker_.body(),
      json::Value::object(
          {{"model", "agent"}, {"prompt", "why?"}, {"system", "be brief"}, {"maxTokens", 50}}));
  const TempDir dir;
  const std::string schema = (dir.path() / "schema.json").string();
  write_file_durably(schema, R"({"type": "object"})", 0600);
  broker_.answer(200, R"({"usage":{"json":1},"json":{"n":1.50,"list":[{"json":null}]},"cost":0})");
  const CommandResult json = run({"llm", "--schema", schema, "-"}, "list it\n");
  EXPECT_EQ(json.out, R"({
  "n": 1.50,
  "list": [
    {
      "json": null
    }
  ]
}
)") << "numbers are not rounded, only the outer member counts";
  EXPECT_EQ(broker_.body().at_path({"schema", "type"}).as_string(), "object");
  EXPECT_EQ(broker_.body().get_string("model"), "utility");
}

TEST_F(UmpCli, errors_of_the_broker_are_printed) {
  broker_.answer(403, R"({"code":"forbidden","message":"the run reached its cost limit"})");
  const CommandResult refused = run({"llm", "hi"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err, "ump: the run reached its cost limit\n");
  broker_.answer(502, "<html>");
  EXPECT_EQ(run({"step", "x"}).err, "ump: the broker answered with the HTTP status 502\n");
}

TEST_F(UmpCli, answers_are_read_chunked_and_cut_ones_are_noticed) {
  broker_.answer_raw(
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n4;x=y\r\n\"1\"}\r\n"
      "0\r\n\r\n");
  EXPECT_EQ(run({"state", "list"}).out, "{\"a\":\"1\"}\n");
  broker_.answer_raw("HTTP/1.1 200 OK\r\n\r\n{\"to\":\"the end\"}");
  EXPECT_EQ(run({"state", "list"}).out, "{\"to\":\"the end\"}\n");
  for (const char* cut :
       {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", "SSH-2.0-x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}"}) {
    broker_.answer_raw(cut);
    const CommandResult result = run({"state", "list"});
    EXPECT_EQ(result.exit_code, 1) << cut;
    EXPECT_EQ(result.err, "ump: the broker's answer broke off\n") << cut;
  }
}

}  // namespace
}  // namespace umpteenth
