// Secrets at rest: `v1.<key id>.<base64url(bytes)>`. The master key never leaves this object.
//
//   bytes  = "s1" | salt, 32 random bytes            | box, key HKDF(master, salt,
//   "umpteenth/secrets/s1")
//          | "x1" | ephemeral X25519 public key, 32  | box, key HKDF(X25519, ephemeral public key +
//                                                          instance's, "umpteenth/secrets/x1")
//   box    = nonce, 12 bytes | AES-256-GCM ciphertext | tag, 16 bytes
//   aad    = form, instance id, "umpteenth.dev", "Secret", namespace, name, entry, each after its
//            length as 32 bits, big endian
//   X25519 private key = HKDF(master, instance id, "umpteenth/secrets/x25519")
//   key id = the first 8 hex digits of SHA-256(X25519 public key); HKDF is HKDF-SHA256(key, salt,
//   info)
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace umpteenth::apis {

struct SealedEntry {  // what a value is bound to
  std::string ns, name, entry;
};

class Sealer {
 public:
  // master_keys: newest first, each ≥ 16 bytes; all open, the first seals.
  Sealer(std::string instance_id, std::vector<std::string> master_keys);

  std::string seal(const SealedEntry& where, std::string_view value) const;
  std::string open(const SealedEntry& where, std::string_view sealed) const;  // Error(invalid)
  bool is_current(std::string_view sealed) const;  // s1 under the newest key
  std::string fingerprint(const SealedEntry& where, std::string_view value) const;  // 8 hex digits
  std::string public_key() const;  // for offline sealing: base64url X25519
  const std::string& instance_id() const { return instance_id_; }

  // Offline, with only the public key and the instance id.
  static std::string seal_offline(std::string_view public_key, std::string_view instance_id,
                                  const SealedEntry& where, std::string_view value);

 private:
  struct Key {
    std::string master, id, private_key, public_key;
  };
  const Key* find_key(std::string_view id) const;

  std::string instance_id_;
  std::vector<Key> keys_;
  std::string fingerprint_key_;
};

// Admission of a Secret on every path, BEFORE prepare_create and prepare_update (so that a re-apply
// of the same values is no change): seals spec.stringData into spec.sealedData, keeps the old
// ciphertext where the value is unchanged, re-seals x1 as s1, proves that every new sealed entry
// opens here, replaces the clear values inside the last-applied annotation by "sealed" (a key that
// left it leaves sealedData too), sets status.fingerprints, and refuses (Error(invalid)) other
// labels or annotations that contain a given value of six or more characters. For server-side apply
// it is called on the applied configuration, with the live object as `old`.
void admit_secret(const Sealer& sealer, json::Value& object, const json::Value* old);

// The value a reference {secret, key} means: that key; with key "" the key `value`, else the only
// one, else Error(invalid) that names the keys. secret: the Secret object.
std::string secret_value(const Sealer& sealer, const json::Value& secret, const std::string& key);

}  // namespace umpteenth::apis
