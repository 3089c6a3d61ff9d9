// Certificates of umpd's own authority, by OpenSSL: EC P-256, SHA-256. Texts are PEM. Failures
// throw Error(internal), what cannot be parsed Error(invalid).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace umpteenth::x509 {

struct Certificate {
  std::string cert_pem;
  std::string key_pem;  // PKCS#8
};

struct Names {
  std::vector<std::string> dns;        // host names
  std::vector<std::string> addresses;  // literal IPs
  bool operator==(const Names&) const = default;
};

// Self-signed. key_pem "" = a fresh key; the same key again renews it for those who trust the old.
Certificate make_authority(const std::string& common_name, Time now, Duration valid,
                           std::string_view key_pem = {});
Certificate issue_server(const Certificate& authority, const Names& names, Time now,
                         Duration valid);

struct Info {
  std::string subject;  // the common name
  Time not_before, not_after;
  Names names;
  bool authority = false;
};
Info inspect(std::string_view cert_pem);
// The signature fits the authority's key, and the private key the certificate.
bool issued_by(std::string_view cert_pem, std::string_view authority_pem);
bool key_fits(const Certificate& certificate);

}  // namespace umpteenth::x509
