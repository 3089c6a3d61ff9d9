#include "base/x509.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace umpteenth::x509 {
namespace {

const Time kNow = parse_time("2026-11-30T08:00:00Z");
constexpr std::chrono::days kYear{365};

TEST(X509, server_certificate_carries_its_names_and_fits_its_authority) {
  const Certificate authority = make_authority("umpteenth", kNow, kYear);
  const Names names{{"localhost", "ump.example"}, {"127.0.0.1", "::1"}};
  const Certificate server = issue_server(authority, names, kNow, std::chrono::days(30));
  const Info info = inspect(server.cert_pem);
  EXPECT_EQ(info.names, names);
  EXPECT_FALSE(info.authority);
  EXPECT_EQ(info.not_after, kNow + std::chrono::days(30));
  EXPECT_LT(info.not_before, kNow);
  EXPECT_TRUE(issued_by(server.cert_pem, authority.cert_pem));
  EXPECT_TRUE(key_fits(server));
}

TEST(X509, authority_is_one_and_others_are_refused) {
  const Certificate a = make_authority("umpteenth", kNow, kYear);
  const Certificate b = make_authority("umpteenth", kNow, kYear);
  EXPECT_TRUE(inspect(a.cert_pem).authority);
  EXPECT_EQ(inspect(a.cert_pem).subject, "umpteenth");
  const Certificate server = issue_server(a, {{"localhost"}, {}}, kNow, kYear);
  EXPECT_FALSE(issued_by(server.cert_pem, b.cert_pem));
  EXPECT_FALSE(key_fits({server.cert_pem, a.key_pem}));
}

TEST(X509, renewed_authority_still_vouches_for_what_the_old_one_issued) {
  const Certificate old = make_authority("umpteenth", kNow, kYear);
  const Certificate server = issue_server(old, {{"localhost"}, {}}, kNow, kYear);
  const Certificate renewed = make_authority("umpteenth", kNow + kYear, kYear, old.key_pem);
  EXPECT_NE(renewed.cert_pem, old.cert_pem);
  EXPECT_TRUE(issued_by(server.cert_pem, renewed.cert_pem));
}

TEST(X509, garbage_and_false_addresses_are_invalid) {
  EXPECT_THROW(inspect("no certificate"), Error);
  const Certificate authority = make_authority("umpteenth", kNow, kYear);
  try {
    issue_server(authority, {{}, {"127.0.0.1,DNS:evil.example"}}, kNow, kYear);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid);
  }
}

TEST(X509, names_are_taken_as_they_are) {
  const Certificate authority = make_authority("umpteenth", kNow, kYear);
  const Names names{{"a.example,DNS:evil.example"}, {}};
  const Certificate server = issue_server(authority, names, kNow, kYear);
  EXPECT_EQ(inspect(server.cert_pem).names.dns.size(), 1U);
}

}  // namespace
}  // namespace umpteenth::x509
