// Cryptography, all of it OpenSSL's. Failures throw Error(internal) with OpenSSL's own text.
#pragma once

#include <string>
#include <string_view>

namespace umpteenth::crypto {

std::string random_bytes(size_t n);
std::string sha256(std::string_view bytes);  // 32 raw bytes
std::string sha1(std::string_view bytes);    // 20 raw bytes, for git objects
std::string hmac_sha256(std::string_view key, std::string_view bytes);
std::string hkdf_sha256(std::string_view key, std::string_view salt, std::string_view info,
                        size_t n);
bool equal_constant_time(std::string_view a, std::string_view b);

// AES-256-GCM. Sealed = 12-byte nonce | ciphertext | 16-byte tag. key: 32 bytes.
std::string aes_gcm_seal(std::string_view key, std::string_view plain, std::string_view aad);
// Error(invalid) where key, data or aad do not fit.
std::string aes_gcm_open(std::string_view key, std::string_view sealed, std::string_view aad);

struct X25519Pair {
  std::string private_key;  // 32 bytes
  std::string public_key;   // 32 bytes
};
X25519Pair x25519_generate();
X25519Pair x25519_from_private(std::string_view private_key);
std::string x25519_shared(std::string_view private_key, std::string_view peer_public_key);

std::string hex(std::string_view bytes);
std::string base64(std::string_view bytes);
std::string base64url(std::string_view bytes);      // no padding
std::string from_base64(std::string_view text);     // Error(bad_request)
std::string from_base64url(std::string_view text);  // Error(bad_request)

std::string uuid4();
std::string random_token(std::string_view prefix);  // prefix + base64url of 32 random bytes

}  // namespace umpteenth::crypto
