#include "base/x509.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <climits>
#include <ctime>

#include "base/error.h"
#include "base/handle.h"
#include "base/openssl_error.h"

namespace umpteenth::x509 {
namespace {

using Bio = Handle<BIO, BIO_free_all>;
using Key = Handle<EVP_PKEY, EVP_PKEY_free>;
using Cert = Handle<X509, X509_free>;
using Extension = Handle<X509_EXTENSION, X509_EXTENSION_free>;
using GeneralNames = Handle<GENERAL_NAMES, GENERAL_NAMES_free>;

constexpr std::chrono::minutes kClockSkew{5};

Bio reader(std::string_view text) {
  if (text.size() > INT_MAX) throw Error(Code::invalid, "PEM text is too long");
  Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (!bio) throw_openssl_error("read PEM");
  return bio;
}

std::string written(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

Cert parse_cert(std::string_view pem) {
  const Bio bio = reader(pem);
  Cert cert(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!cert) throw_openssl_error("parse certificate", Code::invalid);
  return cert;
}

Key parse_key(std::string_view pem) {
  const Bio bio = reader(pem);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (!key) throw_openssl_error("parse private key", Code::invalid);
  return key;
}

Key make_key() {
  Key key(EVP_EC_gen("P-256"));
  if (!key) throw_openssl_error("make a P-256 key");
  return key;
}

std::string pem_of(X509* cert) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), cert) != 1) throw_openssl_error("write certificate");
  return written(bio);
}

std::string pem_of(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio ||
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    throw_openssl_error("write private key");
  return written(bio);
}

void set_serial(X509* cert) {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) throw_openssl_error("make a serial number");
  bytes[0] &= 0x7f;
  const Handle<BIGNUM, BN_free> number(BN_bin2bn(bytes.data(), bytes.size(), nullptr));
  if (!number || !BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(cert)))
    throw_openssl_error("set serial number");
}

void set_times(X509* cert, Time from, Time to) {
  const std::time_t begin = std::chrono::system_clock::to_time_t(from);
  const std::time_t end = std::chrono::system_clock::to_time_t(to);
  if (!ASN1_TIME_set(X509_getm_notBefore(cert), begin) ||
      !ASN1_TIME_set(X509_getm_notAfter(cert), end))
    throw_openssl_error("set validity");
}

void set_subject(X509* cert, const std::string& common_name) {
  const auto* text = reinterpret_cast<const unsigned char*>(common_name.c_str());
  if (X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8, text, -1, -1,
                                 0) != 1)
    throw_openssl_error("set subject");
}

void add_extension(X509* cert, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  if (!extension || X509_add_ext(cert, extension.get(), -1) != 1)
    throw_openssl_error("add extension");
}

std::string raw_address(const std::string& text) {
  std::string raw(16, '\0');
  if (inet_pton(AF_INET, text.c_str(), raw.data()) == 1) return raw.substr(0, 4);
  if (inet_pton(AF_INET6, text.c_str(), raw.data()) == 1) return raw;
  throw Error(Code::invalid, "certificate name \"" + text + "\" is not an IP address");
}

// As structures, never as configuration text: a name cannot smuggle in another.
void add_name(GENERAL_NAMES* all, int type, const std::string& bytes) {
  GENERAL_NAME* name = GENERAL_NAME_new();
  ASN1_STRING* value =
      name ? ASN1_STRING_type_new(type == GEN_DNS ? V_ASN1_IA5STRING : V_ASN1_OCTET_STRING)
           : nullptr;
  if (!value || ASN1_STRING_set(value, bytes.data(), static_cast<int>(bytes.size())) != 1) {
    ASN1_STRING_free(value);
    GENERAL_NAME_free(name);
    throw_openssl_error("make certificate name");
  }
  GENERAL_NAME_set0_value(name, type, value);
  if (sk_GENERAL_NAME_push(all, name) == 0) {
    GENERAL_NAME_free(name);
    throw_openssl_error("add certificate name");
  }
}

void add_names(X509* cert, const Names& names) {
  const GeneralNames all(sk_GENERAL_NAME_new_null());
  if (!all) throw_openssl_error("make certificate names");
  for (const std::string& host : names.dns) add_name(all.get(), GEN_DNS, host);
  for (const std::string& ip : names.addresses) add_name(all.get(), GEN_IPADD, raw_address(ip));
  if (X509_add1_ext_i2d(cert, NID_subject_alt_name, all.get(), 0, X509V3_ADD_APPEND) != 1)
    throw_openssl_error("add certificate names");
}

Cert begin_certificate(EVP_PKEY* key, const std::string& common_name, Time now, Duration valid) {
  Cert cert(X509_new());
  if (!cert || X509_set_version(cert.get(), X509_VERSION_3) != 1)
    throw_openssl_error("make certificate");
  set_serial(cert.get());
  set_times(cert.get(), now - kClockSkew, now + valid);
  set_subject(cert.get(), common_name);
  if (X509_set_pubkey(cert.get(), key) != 1) throw_openssl_error("set public key");
  return cert;
}

void sign(X509* cert, X509* issuer, EVP_PKEY* key) {
  if (X509_set_issuer_name(cert, X509_get_subject_name(issuer)) != 1 ||
      X509_sign(cert, key, EVP_sha256()) == 0)
    throw_openssl_error("sign certificate");
}

Time time_of(const ASN1_TIME* at) {
  std::tm parts{};
  if (!at || ASN1_TIME_to_tm(at, &parts) != 1) throw_openssl_error("read validity", Code::invalid);
  return std::chrono::time_point_cast<Duration>(
      std::chrono::system_clock::from_time_t(timegm(&parts)));
}

std::string address_text(const ASN1_OCTET_STRING* raw) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(raw) == 4 ? AF_INET : AF_INET6;
  if (!inet_ntop(family, ASN1_STRING_get0_data(raw), text.data(), text.size())) return "";
  return text.data();
}

Names names_of(X509* cert) {
  Names names;
  const GeneralNames all(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(cert, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_DNS)
      names.dns.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                             static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
    if (name->type == GEN_IPADD) names.addresses.push_back(address_text(name->d.iPAddress));
  }
  return names;
}

}  // namespace

Certificate make_authority(const std::string& common_name, Time now, Duration valid,
                           std::string_view key_pem) {
  const Key key = key_pem.empty() ? make_key() : parse_key(key_pem);
  const Cert cert = begin_certificate(key.get(), common_name, now, valid);
  add_extension(cert.get(), cert.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(cert.get(), cert.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(cert.get(), cert.get(), NID_subject_key_identifier, "hash");
  sign(cert.get(), cert.get(), key.get());
  return {pem_of(cert.get()), pem_of(key.get())};
}

Certificate issue_server(const Certificate& authority, const Names& names, Time now,
                         Duration valid) {
  const Cert issuer = parse_cert(authority.cert_pem);
  const Key issuer_key = parse_key(authority.key_pem);
  const Key key = make_key();
  const Cert cert = begin_certificate(key.get(), "umpd", now, valid);
  add_extension(cert.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE");
  add_extension(cert.get(), issuer.get(), NID_key_usage, "critical,digitalSignature");
  add_extension(cert.get(), issuer.get(), NID_ext_key_usage, "serverAuth");
  add_extension(cert.get(), issuer.get(), NID_subject_key_identifier, "hash");
  add_extension(cert.get(), issuer.get(), NID_authority_key_identifier, "keyid");
  add_names(cert.get(), names);
  sign(cert.get(), issuer.get(), issuer_key.get());
  return {pem_of(cert.get()), pem_of(key.get())};
}

Info inspect(std::string_view cert_pem) {
  const Cert cert = parse_cert(cert_pem);
  Info info;
  std::array<char, 256> name{};
  if (X509_NAME_get_text_by_NID(X509_get_subject_name(cert.get()), NID_commonName, name.data(),
                                name.size()) > 0)
    info.subject = name.data();
  info.not_before = time_of(X509_get0_notBefore(cert.get()));
  info.not_after = time_of(X509_get0_notAfter(cert.get()));
  info.names = names_of(cert.get());
  info.authority = X509_check_ca(cert.get()) == 1;
  return info;
}

bool issued_by(std::string_view cert_pem, std::string_view authority_pem) {
  const Cert cert = parse_cert(cert_pem), authority = parse_cert(authority_pem);
  const bool fits = X509_check_issued(authority.get(), cert.get()) == X509_V_OK &&
                    X509_verify(cert.get(), X509_get0_pubkey(authority.get())) == 1;
  ERR_clear_error();
  return fits;
}

bool key_fits(const Certificate& certificate) {
  const Cert cert = parse_cert(certificate.cert_pem);
  const Key key = parse_key(certificate.key_pem);
  const bool fits = X509_check_private_key(cert.get(), key.get()) == 1;
  ERR_clear_error();
  return fits;
}

}  // namespace umpteenth::x509
