// Tokens at rest and over the API; certificates and kubeconfig.
#include <filesystem>

#include "base/fd.h"
#include "base/x509.h"
#include "server/kubeconfig.h"
#include "server/pki.h"
#include "tests/server/api_fixture.h"

namespace umpteenth::server {
namespace {

class TokenTest : public ApiTest {};

TEST_F(TokenTest, are_hashed_at_rest) {
  const std::string member = token_for(Role::member, {"default"});
  for (const auto& [key, value] : store->row_list("tokens")) {
    EXPECT_EQ(value.find(token), std::string::npos);
    EXPECT_EQ(value.find(member), std::string::npos);
  }
  EXPECT_EQ(store->row_list("tokens").size(), 2U);
}

TEST_F(TokenTest, survive_a_restart) {
  const Tokens again(*store, clock);
  ASSERT_TRUE(again.find(token));
  EXPECT_TRUE(again.find(token)->instance_admin);
  EXPECT_FALSE(again.find(token + "x"));
}

TEST_F(TokenTest, rotating_the_admin_token_ends_the_old_one) {
  const std::string fresh = tokens.rotate_admin();
  EXPECT_EQ(send("GET", kNs + "/jobs").status, 401);
  token = fresh;
  EXPECT_EQ(send("GET", kNs + "/jobs").status, 200);
}

TEST_F(TokenTest, expire) {
  TokenInfo info;
  info.name = "short";
  info.workspaces = {"default"};
  info.expires = "2026-11-30T09:00:00Z";
  token = tokens.create(info).token;
  EXPECT_EQ(send("GET", kNs + "/jobs").status, 200);
  clock.advance(std::chrono::hours(1));
  EXPECT_EQ(send("GET", kNs + "/jobs").status, 401);
}

TEST_F(TokenTest, are_made_listed_and_revoked_by_the_admin) {
  const std::string path = "/umpteenth/v1alpha1/tokens";
  const json::Value made =
      ok("POST", path, R"({"name":"ci","role":"Member","workspaces":["default"]})", 201);
  EXPECT_TRUE(made.get_string("token").starts_with("ump_"));
  EXPECT_EQ(send("GET", path).body.find(made.get_string("token")), std::string::npos);
  EXPECT_EQ(ok("GET", path).get("items").size(), 2U);
  const std::string admin = std::exchange(token, made.get_string("token"));
  EXPECT_EQ(send("GET", kNs + "/jobs").status, 200);
  EXPECT_EQ(send("POST", path, R"({"name":"more","role":"Owner","workspaces":["default"]})").status,
            403);
  refused(send("POST", kGv + "/namespaces/default/modelproviders", "{}"), 403,
          "modelproviders.umpteenth.dev is forbidden: User \"token:ci\" cannot create resource "
          "\"modelproviders\" in API group \"umpteenth.dev\" in the namespace \"default\"");
  token = admin;
  ok("DELETE", path + "/" + made.get_string("id"));
  EXPECT_EQ(send("DELETE", path + "/" + made.get_string("id")).status, 404);
  EXPECT_EQ(send("DELETE", path + "/admin").status, 403);
  token = made.get_string("token");
  EXPECT_EQ(send("GET", kNs + "/jobs").status, 401);
}

TEST_F(TokenTest, bad_requests_for_tokens_name_the_field) {
  const std::string path = "/umpteenth/v1alpha1/tokens";
  refused(send("POST", path, R"({"name":"x","role":"Boss"})"), 422,
          "role: Unsupported value: \"Boss\": supported values: \"Member\", \"Admin\", \"Owner\", "
          "\"InstanceAdmin\"");
  EXPECT_EQ(send("POST", path, R"({"role":"Member","workspaces":["a"]})").status, 422);
  EXPECT_EQ(send("POST", path, R"({"name":"x","role":"Member"})").status, 422);
  EXPECT_EQ(send("POST", path, R"({"name":"x"})").status, 422);
  EXPECT_EQ(
      send("POST", path, R"({"name":"x","role":"Member","workspaces":["a"],"hash":"h"})").status,
      400);
}

TEST(Pki, is_made_once_and_kept) {
  const TempDir dir;
  const Time now = parse_time("2026-11-30T08:00:00Z");
  const x509::Names names = server_names("host", "ump.example");
  const Pki first = ensure_pki(dir.path() / "pki", names, now);
  EXPECT_TRUE(first.renewed);
  const Pki second = ensure_pki(dir.path() / "pki", names, now);
  EXPECT_FALSE(second.renewed);
  EXPECT_EQ(first.tls.cert_chain_pem, second.tls.cert_chain_pem);
  EXPECT_EQ(x509::inspect(first.tls.cert_chain_pem).names.dns,
            (std::vector<std::string>{"localhost", "host", "ump.example"}));
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(dir.path() / "pki" / "server.key").permissions(),
            perms::owner_read | perms::owner_write);
  EXPECT_EQ(std::filesystem::status(dir.path() / "pki").permissions(), perms::owner_all);
}

TEST(Pki, renews_before_expiry_for_new_names_and_for_torn_files) {
  const TempDir dir;
  const Time now = parse_time("2026-11-30T08:00:00Z");
  const x509::Names names = server_names("host", "");
  const Pki first = ensure_pki(dir.path(), names, now);
  const Pki late = ensure_pki(dir.path(), names, first.not_after - std::chrono::days(29));
  EXPECT_TRUE(late.renewed);
  EXPECT_EQ(late.authority_pem, first.authority_pem);
  EXPECT_GT(late.not_after, first.not_after);
  EXPECT_TRUE(ensure_pki(dir.path(), server_names("host", "10.0.0.1"), now).renewed);
  write_file_durably(dir.path() / "server.crt", "torn", 0644);
  const Pki repaired = ensure_pki(dir.path(), names, now);
  EXPECT_TRUE(repaired.renewed);
  EXPECT_TRUE(x509::issued_by(repaired.tls.cert_chain_pem, repaired.authority_pem));
}

TEST(Pki, a_renewed_authority_is_trusted_through_the_old_one) {
  const TempDir dir;
  const Time now = parse_time("2026-11-30T08:00:00Z");
  const Pki first = ensure_pki(dir.path(), server_names("", ""), now);
  const Pki later = ensure_pki(dir.path(), server_names("", ""), now + std::chrono::days(3400));
  EXPECT_NE(later.authority_pem, first.authority_pem);
  EXPECT_TRUE(x509::issued_by(later.tls.cert_chain_pem, first.authority_pem));
}

TEST(Kubeconfig, is_for_its_owner_only_and_reads_back) {
  const TempDir dir;
  const auto path = dir.path() / "kubeconfig";
  EXPECT_EQ(kubeconfig_token(path), "");
  write_kubeconfig(path, {"https://127.0.0.1:8080", "-----BEGIN…", "ump_secret", "default"});
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(path).permissions(), perms::owner_read | perms::owner_write);
  EXPECT_EQ(kubeconfig_token(path), "ump_secret");
  EXPECT_NE(read_file(path).find("current-context: umpteenth\n"), std::string::npos);
  write_file_durably(path, "a: [", 0600);
  EXPECT_EQ(kubeconfig_token(path), "");
}

}  // namespace
}  // namespace umpteenth::server
