#include "base/crypto.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <array>
#include <climits>

#include "base/error.h"
#include "base/handle.h"
#include "base/openssl_error.h"

namespace umpteenth::crypto {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr size_t kNonceBytes = 12;
constexpr size_t kTagBytes = 16;

const unsigned char* in(std::string_view s) {
  return reinterpret_cast<const unsigned char*>(s.data());
}
unsigned char* into(std::string& s, size_t at = 0) {
  return reinterpret_cast<unsigned char*>(s.data()) + at;
}

std::string digest(const EVP_MD* kind, std::string_view bytes) {
  std::string result(static_cast<size_t>(EVP_MD_get_size(kind)), '\0');
  if (EVP_Digest(bytes.data(), bytes.size(), into(result), nullptr, kind, nullptr) != 1)
    throw_openssl_error("hash");
  return result;
}

using CipherContext = Handle<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free>;
using Key = Handle<EVP_PKEY, EVP_PKEY_free>;
using KeyContext = Handle<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;

int checked_size(std::string_view bytes) {
  if (bytes.size() > INT_MAX - 64) throw Error(Code::too_large, "data to seal is over 2 GiB");
  return static_cast<int>(bytes.size());
}

Key x25519_private(std::string_view raw) {
  if (raw.size() != kKeyBytes) throw Error(Code::invalid, "an X25519 key must be 32 bytes long");
  Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, in(raw), raw.size()));
  if (!key) throw_openssl_error("read X25519 private key");
  return key;
}

std::string raw_of(const Key& key, decltype(&EVP_PKEY_get_raw_public_key) get) {
  std::string raw(kKeyBytes, '\0');
  size_t size = raw.size();
  if (get(key.get(), into(raw), &size) != 1) throw_openssl_error("write X25519 key");
  return raw;
}

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kBase64Url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode(std::string_view bytes, std::string_view alphabet, bool pad) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) text += alphabet[bits >> (count - 6) & 63];
  }
  if (count > 0) text += alphabet[bits << (6 - count) & 63];
  while (pad && text.size() % 4 != 0) text += '=';
  return text;
}

constexpr std::array<int8_t, 256> values_of(std::string_view alphabet) {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < alphabet.size(); ++i)
    values[static_cast<unsigned char>(alphabet[i])] = static_cast<int8_t>(i);
  return values;
}

// Strict: the canonical text of some bytes, or refused.
std::string decode(std::string_view text, const std::array<int8_t, 256>& values) {
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int8_t value = values[static_cast<unsigned char>(c)];
    if (value < 0) throw Error(Code::bad_request, "not base64: a character outside the alphabet");
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xff);
    }
  }
  if (count == 6 || (bits & ((1U << count) - 1)) != 0)
    throw Error(Code::bad_request, "not base64: it ends in the middle of a byte");
  return bytes;
}

constexpr auto kBase64Values = values_of(kBase64);
constexpr auto kBase64UrlValues = values_of(kBase64Url);

}  // namespace

std::string random_bytes(size_t n) {
  std::string bytes(n, '\0');
  if (n > INT_MAX || RAND_bytes(into(bytes), static_cast<int>(n)) != 1)
    throw_openssl_error("get random bytes");
  return bytes;
}

std::string sha256(std::string_view bytes) { return digest(EVP_sha256(), bytes); }
std::string sha1(std::string_view bytes) { return digest(EVP_sha1(), bytes); }

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  std::string result(32, '\0');
  unsigned size = 0;
  if (HMAC(EVP_sha256(), key.data(), checked_size(key), in(bytes), bytes.size(), into(result),
           &size) == nullptr)
    throw_openssl_error("compute HMAC");
  return result;
}

std::string hkdf_sha256(std::string_view key, std::string_view salt, std::string_view info,
                        size_t n) {
  const Handle<EVP_KDF, EVP_KDF_free> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  if (!kdf) throw_openssl_error("derive key");
  const Handle<EVP_KDF_CTX, EVP_KDF_CTX_free> context(EVP_KDF_CTX_new(kdf.get()));
  const auto octets = [](const char* name, std::string_view s) {
    return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(s.data()), s.size());
  };
  std::array params{
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, const_cast<char*>("SHA256"), 0),
      octets(OSSL_KDF_PARAM_KEY, key),
      octets(OSSL_KDF_PARAM_INFO, info.empty() ? std::string_view("") : info),
      salt.empty() ? OSSL_PARAM_construct_end() : octets(OSSL_KDF_PARAM_SALT, salt),
      OSSL_PARAM_construct_end(),
  };
  std::string result(n, '\0');
  if (!context || EVP_KDF_derive(context.get(), into(result), n, params.data()) != 1)
    throw_openssl_error("derive key");
  return result;
}

bool equal_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string aes_gcm_seal(std::string_view key, std::string_view plain, std::string_view aad) {
  if (key.size() != kKeyBytes) throw Error(Code::invalid, "the key must be 32 bytes long");
  const int plain_size = checked_size(plain);
  std::string sealed = random_bytes(kNonceBytes);
  sealed.resize(kNonceBytes + plain.size() + kTagBytes);
  const CipherContext context(EVP_CIPHER_CTX_new());
  int n = 0;
  const bool ok =
      context &&
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, in(key), in(sealed)) == 1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &n, in(aad), checked_size(aad)) == 1 &&
      EVP_EncryptUpdate(context.get(), into(sealed, kNonceBytes), &n, in(plain), plain_size) == 1 &&
      EVP_EncryptFinal_ex(context.get(), into(sealed, kNonceBytes + plain.size()), &n) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes,
                          into(sealed, kNonceBytes + plain.size())) == 1;
  if (!ok) throw_openssl_error("seal");
  return sealed;
}

std::string aes_gcm_open(std::string_view key, std::string_view sealed, std::string_view aad) {
  if (key.size() != kKeyBytes) throw Error(Code::invalid, "the key must be 32 bytes long");
  if (sealed.size() < kNonceBytes + kTagBytes)
    throw Error(Code::invalid, "sealed data is shorter than its nonce and tag");
  checked_size(sealed);
  const std::string_view body = sealed.substr(kNonceBytes, sealed.size() - kNonceBytes - kTagBytes);
  std::string tag(sealed.substr(sealed.size() - kTagBytes));
  std::string plain(body.size(), '\0');
  const CipherContext context(EVP_CIPHER_CTX_new());
  int n = 0;
  const bool ready =
      context &&
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, in(key), in(sealed)) == 1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &n, in(aad), checked_size(aad)) == 1 &&
      EVP_DecryptUpdate(context.get(), into(plain), &n, in(body), static_cast<int>(body.size())) ==
          1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, into(tag)) == 1;
  if (!ready) throw_openssl_error("open sealed data");
  if (EVP_DecryptFinal_ex(context.get(), into(plain, plain.size()), &n) != 1) {
    ERR_clear_error();
    throw Error(Code::invalid, "sealed data does not open with this key and context");
  }
  return plain;
}

X25519Pair x25519_generate() {
  EVP_PKEY* made = EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519");
  const Key key(made);
  if (!key) throw_openssl_error("make X25519 key");
  return {raw_of(key, EVP_PKEY_get_raw_private_key), raw_of(key, EVP_PKEY_get_raw_public_key)};
}

X25519Pair x25519_from_private(std::string_view private_key) {
  const Key key = x25519_private(private_key);
  return {std::string(private_key), raw_of(key, EVP_PKEY_get_raw_public_key)};
}

std::string x25519_shared(std::string_view private_key, std::string_view peer_public_key) {
  const Key mine = x25519_private(private_key);
  if (peer_public_key.size() != kKeyBytes)
    throw Error(Code::invalid, "an X25519 key must be 32 bytes long");
  const Key peer(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, in(peer_public_key),
                                             peer_public_key.size()));
  const KeyContext context(EVP_PKEY_CTX_new(mine.get(), nullptr));
  std::string shared(kKeyBytes, '\0');
  size_t size = shared.size();
  if (!peer || !context || EVP_PKEY_derive_init(context.get()) != 1 ||
      EVP_PKEY_derive_set_peer(context.get(), peer.get()) != 1)
    throw_openssl_error("agree on an X25519 secret");
  // OpenSSL refuses points of small order, which only a forged key has.
  if (EVP_PKEY_derive(context.get(), into(shared), &size) != 1)
    throw_openssl_error("agree on an X25519 secret", Code::invalid);
  return shared;
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string base64(std::string_view bytes) { return encode(bytes, kBase64, true); }
std::string base64url(std::string_view bytes) { return encode(bytes, kBase64Url, false); }

std::string from_base64(std::string_view text) {
  if (text.size() % 4 != 0)
    throw Error(Code::bad_request, "not base64: its length is not a multiple of 4");
  if (text.ends_with("=="))
    text.remove_suffix(2);
  else if (text.ends_with('='))
    text.remove_suffix(1);
  return decode(text, kBase64Values);
}

std::string from_base64url(std::string_view text) { return decode(text, kBase64UrlValues); }

std::string uuid4() {
  std::string bytes = random_bytes(16);
  bytes[6] = static_cast<char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<char>((bytes[8] & 0x3f) | 0x80);
  std::string text = hex(bytes);
  for (const size_t at : {20, 16, 12, 8}) text.insert(at, 1, '-');
  return text;
}

std::string random_token(std::string_view prefix) {
  return std::string(prefix) + base64url(random_bytes(32));
}

}  // namespace umpteenth::crypto
