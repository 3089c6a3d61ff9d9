#include "cmd/umpd/config.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "base/fd.h"
#include "tests/support/golden.h"

namespace umpteenth::umpd {
namespace {

Environment env_of(std::map<std::string, std::string> values) {
  return [values](const std::string& name) -> std::optional<std::string> {
    const auto it = values.find(name);
    if (it == values.end()) return std::nullopt;
    return it->second;
  };
}

std::string refusal(const ConfigSources& sources) {
  try {
    load_config(sources);
  } catch (const Error& e) {
    return e.message();
  }
  return "accepted";
}

std::string file_refusal(const std::string& text) { return refusal({"config.yml", text, {}, {}}); }

TEST(Config, nothing_is_required) {
  const Config c = load_config({});
  EXPECT_EQ(c.server.host, "127.0.0.1");
  EXPECT_EQ(c.server.port, 8080);
  EXPECT_EQ(c.runs.max_concurrent, 3);
  EXPECT_FALSE(c.is_given("server.port"));
}

TEST(Config, flags_beat_the_environment_which_beats_the_file) {
  const std::string file =
      "server: {port: 1, host: 127.0.0.2}\nruns: {max_concurrent: 9}\nnetwork: {blocked_targets: "
      "[203.0.113.0/24]}\n";
  const Config c =
      load_config({"config.yml",
                   file,
                   env_of({{"SERVER_PORT", "2"}, {"LOG_JSON", "true"}, {"SERVER_HOST", ""}}),
                   {{"server.port", "3"}}});
  EXPECT_EQ(c.file, "config.yml");
  EXPECT_EQ(c.server.port, 3);
  EXPECT_EQ(c.server.host, "127.0.0.2");
  EXPECT_TRUE(c.log.json);
  EXPECT_EQ(c.runs.max_concurrent, 9);
  EXPECT_EQ(c.network.blocked_targets, std::vector<std::string>{"203.0.113.0/24"});
  EXPECT_TRUE(c.is_given("runs.max_concurrent"));
}

TEST(Config, says_where_the_api_may_listen) {
  const auto with = [](std::vector<std::pair<std::string, std::string>> flags) {
    return refusal({"", "", {}, {flags.begin(), flags.end()}});
  };
  EXPECT_EQ(with({{"server.host", "localhost"}}), "accepted");
  EXPECT_EQ(with({{"server.host", "::1"}, {"server.tls.mode", "off"}}), "accepted");
  EXPECT_EQ(with({{"server.host", "unix:///run/umpd.sock"}, {"server.tls.mode", "off"}}),
            "accepted");
  EXPECT_NE(with({{"server.host", "unix:///run/umpd.sock"}}).find("server.tls.mode"),
            std::string::npos);
  EXPECT_NE(with({{"server.host", "0.0.0.0"}, {"server.tls.mode", "off"}}).find("loopback"),
            std::string::npos);
  EXPECT_NE(with({{"engine.endpoint", "garbage"}}).find("engine.endpoint"), std::string::npos);
  EXPECT_NE(with({{"server.host", "example"}}).find("server.host"), std::string::npos);
  EXPECT_NE(with({{"server.tls.cert", "/c.pem"}}).find("server.tls.mode"), std::string::npos);
}

TEST(Config, a_file_of_comments_says_nothing) {
  EXPECT_TRUE(load_config({"config.yml", "# server: {port: 1}\n", {}, {}}).given.empty());
  EXPECT_TRUE(load_config({"config.yml", "", {}, {}}).given.empty());
}

TEST(Config, _FILE_reads_and_trims_a_file) {
  TempDir folder;
  write_file_durably(folder.path() / "key", "  0123456789abcdef\n", 0600);
  const Config c = load_config(
      {"", "", env_of({{"APP_ENCRYPTION_KEY_FILE", (folder.path() / "key").string()}}), {}});
  EXPECT_EQ(c.app.encryption_key, "0123456789abcdef");
}

TEST(Config, refusals_name_file_line_option_value_and_rule) {
  EXPECT_EQ(file_refusal("server:\n  port: 8080\n  prot: 1\n"),
            "config.yml: line 3: unknown option server.prot; did you mean server.port?");
  EXPECT_EQ(file_refusal("serve: {}\n"), "config.yml: line 1: unknown option serve");
  EXPECT_EQ(
      file_refusal("server: {port: 99999}\n"),
      "config.yml: line 1: server.port is \"99999\", it must be a whole number from 0 to 65535");
  EXPECT_EQ(file_refusal("log: {level: verbose}\n"),
            "config.yml: line 1: unknown log.level (LOG_LEVEL) \"verbose\", use debug, info, warn "
            "or error");
  EXPECT_EQ(file_refusal("log: {json: yes}\n"),
            "config.yml: line 1: log.json is \"yes\", it must be true or false");
  EXPECT_EQ(file_refusal("sandbox: {egress_filter: strict}\n"),
            "config.yml: line 1: sandbox.egress_filter is \"strict\", it must be one of auto "
            "required off");
  EXPECT_EQ(file_refusal("network: {blocked_targets: 1}\n"),
            "config.yml: line 1: network.blocked_targets is \"1\", it must be a list of strings");
  EXPECT_NE(file_refusal("a: [\n").find("config.yml: "), std::string::npos);
  EXPECT_EQ(refusal({"", "", env_of({{"SERVER_PORT", "x"}}), {}}),
            "SERVER_PORT: server.port is \"x\", it must be a whole number from 0 to 65535");
  EXPECT_EQ(refusal({"", "", env_of({{"APP_ENCRYPTION_KEY", "short"}}), {}}),
            "app.encryption_key (APP_ENCRYPTION_KEY) must be at least 16 bytes");
  EXPECT_EQ(refusal({"", "", {}, {{"network.blocked_targets", "10.0.0.1/8"}}}),
            "network.blocked_targets has \"10.0.0.1/8\", it must be a CIDR such as 203.0.113.0/24");
  EXPECT_EQ(refusal({"", "", {}, {{"server.tls.mode", "files"}}}),
            "server.tls.mode is \"files\": server.tls.cert and server.tls.key must be set");
}

TEST(Config, plain_http_is_for_loopback_only) {
  EXPECT_NE(refusal({"", "", {}, {{"server.tls.mode", "off"}, {"server.host", "0.0.0.0"}}})
                .find("must be a loopback address"),
            std::string::npos);
  EXPECT_EQ(load_config({"", "", {}, {{"server.tls.mode", "off"}}}).server.tls_mode, "off");
}

TEST(Config, the_key_is_never_shown) {
  EXPECT_EQ(file_refusal("app: {encryption_key: [topsecretvalue]}\n").find("topsecretvalue"),
            std::string::npos);
}

TEST(Config, is_documented) {
  EXPECT_TRUE(testing::golden("docs/configuration.md", configuration_markdown()));
}

}  // namespace
}  // namespace umpteenth::umpd
