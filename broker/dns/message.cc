#include "broker/dns/message.h"

#include <arpa/nameser.h>

#include <array>
#include <cctype>

namespace umpteenth::broker::dns {
namespace {

constexpr size_t kHeader = 12;
constexpr uint16_t kIn = 1, kOpt = 41;
constexpr size_t kMostRecords = 128;
constexpr uint16_t kUdpToUpstream = 1232;
constexpr uint16_t kIpv6Hint = 6;  // of an HTTPS record's parameters

const u_char* bytes_of(std::string_view text) {
  return reinterpret_cast<const u_char*>(text.data());
}

uint16_t get16(std::string_view text, size_t at) {
  return static_cast<uint16_t>((static_cast<uint8_t>(text[at]) << 8) |
                               static_cast<uint8_t>(text[at + 1]));
}

void put16(std::string& text, size_t value) {
  text += static_cast<char>(value >> 8);
  text += static_cast<char>(value);
}

// A name inside the message, with compression followed; nullopt where it is none. *used: how many
// bytes it takes where it stands.
std::optional<std::string> unpack(std::string_view message, size_t at, size_t* used) {
  std::array<u_char, NS_MAXCDNAME + 1> name{};
  const u_char* from = bytes_of(message);
  if (at >= message.size()) return std::nullopt;
  const int n = ns_name_unpack(from, from + message.size(), from + at, name.data(), name.size());
  if (n < 0) return std::nullopt;
  *used = static_cast<size_t>(n);
  size_t length = 0;
  while (name[length] != 0) length += name[length] + 1U;
  return std::string(reinterpret_cast<const char*>(name.data()), length + 1);
}

std::optional<Question> parse_question(std::string_view message, size_t* end) {
  if (message.size() < kHeader || get16(message, 4) != 1) return std::nullopt;
  size_t used = 0;
  const auto name = unpack(message, kHeader, &used);
  if (!name || message.size() < kHeader + used + 4) return std::nullopt;
  *end = kHeader + used + 4;
  if (get16(message, *end - 2) != kIn) return std::nullopt;
  return Question{*name, get16(message, *end - 4)};
}

// (The library's enumeration of types lacks newer ones.)
uint16_t type_of(const ns_rr& rr) { return rr.type; }

// The parameters without addresses of IPv6; nullopt where they are malformed.
std::optional<std::string> without_ipv6(std::string_view parameters) {
  std::string kept;
  while (!parameters.empty()) {
    if (parameters.size() < 4) return std::nullopt;
    const size_t whole = 4U + get16(parameters, 2);
    if (parameters.size() < whole) return std::nullopt;
    if (get16(parameters, 0) != kIpv6Hint) kept += parameters.substr(0, whole);
    parameters.remove_prefix(whole);
  }
  return kept;
}

// The record's data with names unpacked; nullopt where it is malformed or of another type.
std::optional<std::string> data_of(std::string_view message, const ns_rr& rr) {
  const auto at = static_cast<size_t>(ns_rr_rdata(rr) - bytes_of(message));
  const size_t length = ns_rr_rdlen(rr);
  const std::string_view raw = message.substr(at, length);
  size_t used = 0;
  const auto name_after = [&](size_t fixed) -> std::optional<std::string> {
    if (length <= fixed) return std::nullopt;
    const auto name = unpack(message, at + fixed, &used);
    if (!name || fixed + used > length) return std::nullopt;
    return std::string(raw.substr(0, fixed)) + *name;
  };
  switch (type_of(rr)) {
    case kA:
      return length == 4 ? std::optional(std::string(raw)) : std::nullopt;
    case kCname:
      return name_after(0);
    case kMx:
      return name_after(2);
    case kSrv:
      return name_after(6);
    case kTxt:
      return std::string(raw);
    case kHttps: {
      auto begin = name_after(2);
      const auto rest = begin ? without_ipv6(raw.substr(2 + used)) : std::nullopt;
      return rest ? std::optional(*begin + *rest) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::string header(uint16_t id, uint16_t flags, size_t answers, size_t additional) {
  std::string text;
  for (const size_t field : {size_t{id}, size_t{flags}, size_t{1}, answers, size_t{0}, additional})
    put16(text, field);
  return text;
}

void put_question(std::string& text, const Question& q) {
  text += q.wire_name;
  put16(text, q.type);
  put16(text, kIn);
}

}  // namespace

std::string Question::name() const {
  std::string text;
  for (size_t at = 0; at < wire_name.size() && wire_name[at] != 0;) {
    const auto n = static_cast<uint8_t>(wire_name[at]);
    if (!text.empty()) text += '.';
    for (size_t i = at + 1; i <= at + n && i < wire_name.size(); ++i) {
      const auto c = static_cast<unsigned char>(wire_name[i]);
      // What could be taken for something else in a text is replaced.
      text += std::isgraph(c) != 0 && c != '.' ? static_cast<char>(std::tolower(c)) : '?';
    }
    at += n + 1U;
  }
  return text;
}

std::optional<Query> parse_query(std::string_view message) {
  size_t end = 0;
  const auto question = parse_question(message, &end);
  if (!question) return std::nullopt;
  const uint16_t flags = get16(message, 2);
  const bool plain = (flags & 0xF800) == 0;  // a question, opcode QUERY
  if (!plain || get16(message, 6) != 0 || get16(message, 8) != 0) return std::nullopt;
  Query query{get16(message, 0), (flags & 0x0100) != 0, *question};
  // OPT: the root's name, the type, and how much is taken where others have their class.
  if (get16(message, 10) > 0 && message.size() >= end + 11 && message[end] == 0 &&
      get16(message, end + 1) == kOpt)
    query.udp_bytes = std::max<size_t>(512, std::min<size_t>(4096, get16(message, end + 3)));
  return query;
}

std::optional<Answer> parse_answer(std::string_view message) {
  size_t end = 0;
  const auto question = parse_question(message, &end);
  if (!question) return std::nullopt;
  const uint16_t flags = get16(message, 2);
  if ((flags & 0xF800) != 0x8000) return std::nullopt;
  Answer answer{get16(message, 0),
                static_cast<uint8_t>(flags & 0x000F),
                (flags & 0x0200) != 0,
                *question,
                {}};
  if (answer.truncated) return answer;  // it is asked again by TCP
  ns_msg handle;
  if (ns_initparse(bytes_of(message), static_cast<int>(message.size()), &handle) != 0)
    return std::nullopt;
  const int count = ns_msg_count(handle, ns_s_an);
  if (count > static_cast<int>(kMostRecords)) return std::nullopt;
  for (int i = 0; i < count; ++i) {
    ns_rr rr;
    if (ns_parserr(&handle, ns_s_an, i, &rr) != 0) return std::nullopt;
    if (ns_rr_class(rr) != kIn) continue;
    size_t used = 0;
    std::array<u_char, NS_MAXCDNAME + 1> owner{};
    if (ns_name_pton(ns_rr_name(rr), owner.data(), owner.size()) < 0) return std::nullopt;
    const auto name = unpack({reinterpret_cast<const char*>(owner.data()), owner.size()}, 0, &used);
    auto data = data_of(message, rr);
    if (!name) return std::nullopt;
    if (!data) {
      const uint16_t type = type_of(rr);
      const bool ours =
          type == kA || type == kCname || type == kMx || type == kSrv || type == kHttps;
      if (ours) return std::nullopt;
      continue;  // AAAA, signatures and others are left out
    }
    answer.records.push_back(
        {*name, type_of(rr), static_cast<uint32_t>(ns_rr_ttl(rr)), std::move(*data)});
  }
  return answer;
}

std::string query_text(uint16_t id, const Question& question) {
  std::string text = header(id, 0x0100, 0, 1);
  put_question(text, question);
  text += '\0';
  put16(text, kOpt);
  put16(text, kUdpToUpstream);
  text.append(6, '\0');
  return text;
}

std::string answer_text(const Query& query, uint8_t rcode, const std::vector<Record>& records,
                        size_t max) {
  const auto flags = static_cast<uint16_t>(0x8080 | (query.recursion_desired ? 0x0100 : 0) | rcode);
  std::string text = header(query.id, flags, records.size(), 0);
  put_question(text, query.question);
  for (const Record& r : records) {
    text += r.wire_name;
    put16(text, r.type);
    put16(text, kIn);
    put16(text, r.ttl >> 16);
    put16(text, r.ttl & 0xFFFF);
    put16(text, r.data.size());
    text += r.data;
  }
  if (text.size() <= max) return text;
  text = header(query.id, flags | 0x0200, 0, 0);
  put_question(text, query.question);
  return text;
}

}  // namespace umpteenth::broker::dns
