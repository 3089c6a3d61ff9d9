// DNS messages: what a sandbox asks and what an upstream resolver answers, taken apart by the C
// library's parser and put together anew. Pure. Names are in wire form (length-prefixed labels,
// uncompressed) where they are kept, and dotted text where people see them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace umpteenth::broker::dns {

enum Type : uint16_t {
  kA = 1,
  kCname = 5,
  kPtr = 12,
  kMx = 15,
  kTxt = 16,
  kAaaa = 28,
  kSrv = 33,
  kHttps = 65,
};

enum Rcode : uint8_t {
  kNoError = 0,
  kFormatError = 1,
  kServerFailure = 2,
  kNoSuchName = 3,
  kNotImplemented = 4,
  kRefused = 5,
};

struct Question {
  std::string wire_name;
  uint16_t type = kA;
  std::string name() const;  // dotted, lower case, without the last dot; "" for the root
  bool operator==(const Question&) const = default;
};

struct Query {
  uint16_t id = 0;
  bool recursion_desired = false;
  Question question;
  size_t udp_bytes = 512;  // what the client takes by UDP (EDNS)
};

struct Record {
  std::string wire_name;
  uint16_t type = kA;
  uint32_t ttl = 0;
  std::string data;  // names in it uncompressed
  bool operator==(const Record&) const = default;
};

struct Answer {
  uint16_t id = 0;
  uint8_t rcode = kNoError;
  bool truncated = false;
  Question question;
  std::vector<Record> records;  // the answer section, of the types above
};

// nullopt: not a question of one name in class IN that could be answered.
std::optional<Query> parse_query(std::string_view message);
std::optional<Answer> parse_answer(std::string_view message);

// To an upstream: recursion desired, with EDNS.
std::string query_text(uint16_t id, const Question& question);
// To a client; longer than max bytes, it is empty and marked as truncated.
std::string answer_text(const Query& query, uint8_t rcode, const std::vector<Record>& records,
                        size_t max);

}  // namespace umpteenth::broker::dns
