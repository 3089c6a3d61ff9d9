#include "apis/seal.h"

#include "apis/kind.h"
#include "base/crypto.h"
#include "base/error.h"

namespace umpteenth::apis {
namespace {

constexpr size_t kMinMaster = 16;
constexpr size_t kSalt = 32;
constexpr size_t kPublic = 32;
constexpr size_t kMaxSealed = 100'000;
constexpr std::string_view kSymmetric = "s1", kOffline = "x1";

void append(std::string& out, std::string_view part) {
  const auto n = static_cast<uint32_t>(part.size());
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>((n >> shift) & 0xFF);
  out += part;
}

// What a ciphertext is bound to: every part with its length, so that no two places look the same.
std::string bound_to(std::string_view form, std::string_view instance, const SealedEntry& where) {
  std::string out;
  append(out, form);
  append(out, instance);
  append(out, kGroup);
  append(out, "Secret");
  append(out, where.ns);
  append(out, where.name);
  append(out, where.entry);
  return out;
}

std::string key_id(std::string_view public_key) {
  return crypto::hex(crypto::sha256(public_key)).substr(0, 8);
}

std::string text_form(std::string_view id, std::string_view bytes) {
  return "v1." + std::string(id) + "." + crypto::base64url(bytes);
}

std::string offline_key(std::string_view shared, std::string_view ephemeral,
                        std::string_view recipient) {
  return crypto::hkdf_sha256(shared, std::string(ephemeral) + std::string(recipient),
                             "umpteenth/secrets/x1", 32);
}

std::string place(const SealedEntry& where) {
  return "secret " + where.ns + "/" + where.name + ", entry " + json::quote(where.entry);
}

struct Parsed {
  std::string id, form, head, box;  // head: salt or ephemeral public key
};

Parsed parse(const SealedEntry& where, std::string_view sealed) {
  const auto bad = [&](const char* why) {
    return Error(Code::invalid, place(where) + ": not a sealed value: " + why);
  };
  if (sealed.size() > kMaxSealed) throw bad("it is too long");
  const size_t dot = sealed.find('.', 3);
  if (sealed.substr(0, 3) != "v1." || dot == std::string_view::npos)
    throw bad("it must look like v1.<key id>.<base64url>");
  std::string bytes;
  try {
    bytes = crypto::from_base64url(sealed.substr(dot + 1));
  } catch (const Error&) {  // said with the entry's name
    throw bad("its third part is not base64url");
  }
  static_assert(kSalt == kPublic);
  if (bytes.size() < 2 + kSalt) throw bad("it is too short");
  Parsed p{std::string(sealed.substr(3, dot - 3)), bytes.substr(0, 2), bytes.substr(2, kSalt),
           bytes.substr(2 + kSalt)};
  if (p.form != kSymmetric && p.form != kOffline) throw bad("its form is unknown");
  return p;
}

}  // namespace

Sealer::Sealer(std::string instance_id, std::vector<std::string> master_keys)
    : instance_id_(std::move(instance_id)) {
  if (master_keys.empty()) throw Error(Code::invalid, "app.encryption_key is required");
  for (std::string& master : master_keys) {
    if (master.size() < kMinMaster)
      throw Error(Code::invalid, "app.encryption_key must be at least 16 bytes");
    Key key;
    // Bound to the instance: the same master elsewhere is another key pair.
    key.private_key = crypto::hkdf_sha256(master, instance_id_, "umpteenth/secrets/x25519", 32);
    key.public_key = crypto::x25519_from_private(key.private_key).public_key;
    key.id = key_id(key.public_key);
    key.master = std::move(master);
    keys_.push_back(std::move(key));
  }
  fingerprint_key_ =
      crypto::hkdf_sha256(keys_[0].master, instance_id_, "umpteenth/secrets/fingerprint", 32);
}

const Sealer::Key* Sealer::find_key(std::string_view id) const {
  for (const Key& key : keys_)
    if (key.id == id) return &key;
  return nullptr;
}

std::string Sealer::seal(const SealedEntry& where, std::string_view value) const {
  const Key& key = keys_[0];
  const std::string salt = crypto::random_bytes(kSalt);
  const std::string secret = crypto::hkdf_sha256(key.master, salt, "umpteenth/secrets/s1", 32);
  return text_form(
      key.id, std::string(kSymmetric) + salt +
                  crypto::aes_gcm_seal(secret, value, bound_to(kSymmetric, instance_id_, where)));
}

std::string Sealer::seal_offline(std::string_view public_key, std::string_view instance_id,
                                 const SealedEntry& where, std::string_view value) {
  const std::string recipient = crypto::from_base64url(public_key);
  if (recipient.size() != kPublic)
    throw Error(Code::invalid, "the public key must be 32 bytes in base64url");
  const crypto::X25519Pair ephemeral = crypto::x25519_generate();
  const std::string secret = offline_key(crypto::x25519_shared(ephemeral.private_key, recipient),
                                         ephemeral.public_key, recipient);
  return text_form(key_id(recipient),
                   std::string(kOffline) + ephemeral.public_key +
                       crypto::aes_gcm_seal(secret, value, bound_to(kOffline, instance_id, where)));
}

std::string Sealer::open(const SealedEntry& where, std::string_view sealed) const {
  const Parsed p = parse(where, sealed);
  const Key* key = find_key(p.id);
  if (!key)
    throw Error(Code::invalid, place(where) + ": sealed under key " + p.id.substr(0, 16) +
                                   ", which this instance does not have");
  const std::string aad = bound_to(p.form, instance_id_, where);
  try {
    if (p.form == kSymmetric)
      return crypto::aes_gcm_open(
          crypto::hkdf_sha256(key->master, p.head, "umpteenth/secrets/s1", 32), p.box, aad);
    const std::string shared = crypto::x25519_shared(key->private_key, p.head);
    return crypto::aes_gcm_open(offline_key(shared, p.head, key->public_key), p.box, aad);
  } catch (const Error&) {  // the cause must not say more than this
    throw Error(Code::invalid, place(where) +
                                   ": cannot be opened: it was sealed for another entry, secret, "
                                   "workspace or instance, or was changed");
  }
}

bool Sealer::is_current(std::string_view sealed) const {
  const Parsed p = parse({}, sealed);
  return p.form == kSymmetric && p.id == keys_[0].id;
}

std::string Sealer::fingerprint(const SealedEntry& where, std::string_view value) const {
  std::string bytes = bound_to("fp", instance_id_, where);
  append(bytes, value);
  return crypto::hex(crypto::hmac_sha256(fingerprint_key_, bytes)).substr(0, 8);
}

std::string Sealer::public_key() const { return crypto::base64url(keys_[0].public_key); }

}  // namespace umpteenth::apis
