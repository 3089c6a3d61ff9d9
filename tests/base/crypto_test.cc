#include "base/crypto.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "tests/support/code_of.h"

namespace umpteenth::crypto {
namespace {

std::string unhex(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
  return bytes;
}

using support::code_of;

TEST(Crypto, hashes_match_fips_180) {
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha1("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Crypto, hmac_matches_rfc_4231) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Crypto, hkdf_matches_rfc_5869) {
  EXPECT_EQ(hex(hkdf_sha256(std::string(22, '\x0b'), unhex("000102030405060708090a0b0c"),
                            unhex("f0f1f2f3f4f5f6f7f8f9"), 42)),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  EXPECT_EQ(hex(hkdf_sha256(std::string(22, '\x0b'), "", "", 42)),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

TEST(Crypto, x25519_matches_rfc_7748) {
  const std::string alice =
      unhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
  const std::string bob = unhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
  EXPECT_EQ(hex(x25519_from_private(alice).public_key),
            "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
  EXPECT_EQ(hex(x25519_shared(alice, x25519_from_private(bob).public_key)),
            "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
}

TEST(Crypto, x25519_refuses_forged_keys) {
  const X25519Pair pair = x25519_generate();
  EXPECT_EQ(x25519_from_private(pair.private_key).public_key, pair.public_key);
  EXPECT_EQ(code_of([&] { x25519_shared(pair.private_key, std::string(32, '\0')); }),
            Code::invalid);
  EXPECT_EQ(code_of([&] { x25519_shared(pair.private_key, "short"); }), Code::invalid);
  EXPECT_EQ(code_of([&] { x25519_from_private("short"); }), Code::invalid);
}

// Test case 16 of McGrew and Viega's paper.
TEST(Crypto, aes_gcm_opens_a_published_vector) {
  const std::string key = unhex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
  const std::string aad = unhex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  const std::string sealed = unhex(
      "cafebabefacedbaddecaf888"
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
      "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
      "76fc6ece0f4e1768cddf8853bb2d551b");
  EXPECT_EQ(hex(aes_gcm_open(key, sealed, aad)),
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
            "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
}

TEST(Crypto, aes_gcm_refuses_any_changed_bit_key_and_context) {
  const std::string key = random_bytes(32);
  const std::string sealed = aes_gcm_seal(key, "attack at dawn", "ns/secret");
  EXPECT_EQ(aes_gcm_open(key, sealed, "ns/secret"), "attack at dawn");
  EXPECT_EQ(aes_gcm_open(key, aes_gcm_seal(key, "", ""), ""), "");
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string bad = sealed;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_EQ(code_of([&] { aes_gcm_open(key, bad, "ns/secret"); }), Code::invalid) << i;
  }
  EXPECT_EQ(code_of([&] { aes_gcm_open(key, sealed, "ns/other"); }), Code::invalid);
  EXPECT_EQ(code_of([&] { aes_gcm_open(random_bytes(32), sealed, "ns/secret"); }), Code::invalid);
  EXPECT_EQ(code_of([&] { aes_gcm_open("short", sealed, "ns/secret"); }), Code::invalid);
  EXPECT_EQ(code_of([&] { aes_gcm_open(key, sealed.substr(0, 27), "ns/secret"); }), Code::invalid);
}

TEST(Crypto, base64_matches_rfc_4648_and_is_strict) {
  const std::vector<std::pair<std::string, std::string>> table{{"", ""},
                                                               {"f", "Zg=="},
                                                               {"fo", "Zm8="},
                                                               {"foo", "Zm9v"},
                                                               {"foob", "Zm9vYg=="},
                                                               {"fooba", "Zm9vYmE="},
                                                               {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : table) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
    EXPECT_EQ(from_base64url(base64url(bytes)), bytes);
  }
  EXPECT_EQ(base64url("\xfb\xff"), "-_8");
  for (const char* bad : {"Zg=", "Zg", "Zg==\n", "Z===", "Zh==", "Zm9v Zm9v", "====", "Zm=v"})
    EXPECT_EQ(code_of([&] { from_base64(bad); }), Code::bad_request) << bad;
  for (const char* bad : {"Zg==", "Z", "Zh", "+/8", " "})
    EXPECT_EQ(code_of([&] { from_base64url(bad); }), Code::bad_request) << bad;
}

TEST(Crypto, tokens_and_uuids_have_their_forms) {
  const std::string id = uuid4();
  ASSERT_EQ(id.size(), 36U);
  EXPECT_EQ(id[14], '4');
  EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos);
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(random_token("ump_"));
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(seen.begin()->size(), 4U + 43U);
}

TEST(Crypto, constant_time_compare_is_exact) {
  EXPECT_TRUE(equal_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_constant_time("abc", "abcd"));
}

}  // namespace
}  // namespace umpteenth::crypto
