#include "ump/json.h"

#include <stdlib.h>
#include <string.h>

// Without exceptions a broken invariant can only end the program.
#define RAPIDJSON_ASSERT(x) ((x) ? static_cast<void>(0) : abort())
#include <rapidjson/memorystream.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

// RapidJSON allocates its allocator with new, which is in the C++ library that ump is not linked
// to.
void* operator new(size_t n) {
  if (void* p = malloc(n)) return p;
  abort();
}
void operator delete(void* p) noexcept { free(p); }
void operator delete(void* p, size_t) noexcept { free(p); }

namespace umpteenth::ump {
namespace {

using rapidjson::SizeType;

// Numbers stay text, so that none is rounded on its way through.
constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                            rapidjson::kParseNumbersAsStringsFlag;

template <typename Handler>
bool read(const char* text, size_t n, Handler& handler) {
  rapidjson::MemoryStream stream(text, n);
  rapidjson::Reader reader;
  return !reader.Parse<kFlags>(stream, handler).IsError();
}

struct Ignore : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Ignore> {};

// Passes one member of the outermost object on to a writer.
template <typename Writer>
class Member {
 public:
  Member(const char* key, Writer& writer, Buffer* text) : key_(key), writer_(writer), text_(text) {}
  bool found_value() const { return found_ == Found::value; }
  bool found_text() const { return found_ == Found::text; }

  bool Null() {
    return depth_ == 1 ? skip() : pass([&] { return writer_.Null(); });
  }
  bool Bool(bool b) {
    return pass([&] { return writer_.Bool(b); });
  }
  bool RawNumber(const char* s, SizeType n, bool) {
    return pass([&] { return writer_.RawValue(s, n, rapidjson::kNumberType); });
  }
  bool String(const char* s, SizeType n, bool) {
    if (mine_ && depth_ == 1) {
      found_ = Found::text;
      text_->append(s, n);
      return skip();
    }
    return pass([&] { return writer_.String(s, n); });
  }
  bool StartObject() {
    return open([&] { return writer_.StartObject(); });
  }
  bool Key(const char* s, SizeType n, bool) {
    if (depth_ != 1) return !mine_ || writer_.Key(s, n);
    mine_ = found_ == Found::nothing && n == strlen(key_) && memcmp(s, key_, n) == 0;
    return true;
  }
  bool EndObject(SizeType) {
    return shut([&] { return writer_.EndObject(); });
  }
  bool StartArray() {
    return depth_ > 0 && open([&] { return writer_.StartArray(); });
  }
  bool EndArray(SizeType) {
    return shut([&] { return writer_.EndArray(); });
  }
  // The reader asks for these by name; numbers come as RawNumber.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(int64_t) { return false; }
  bool Uint64(uint64_t) { return false; }
  bool Double(double) { return false; }

 private:
  enum class Found { nothing, text, value } found_ = Found::nothing;

  bool skip() {
    mine_ = false;
    return true;
  }
  template <typename F>
  bool pass(F write) {
    if (depth_ == 0) return false;
    if (!mine_) return true;
    found_ = Found::value;
    if (!write()) return false;
    if (depth_ == 1) mine_ = false;
    return true;
  }
  template <typename F>
  bool open(F write) {
    ++depth_;
    if (!mine_) return true;
    found_ = Found::value;
    return write();
  }
  template <typename F>
  bool shut(F write) {
    --depth_;
    if (!mine_) return true;
    if (depth_ == 1) mine_ = false;
    return write();
  }

  const char* key_;
  Writer& writer_;
  Buffer* text_;
  size_t depth_ = 0;
  bool mine_ = false;
};

class EachString : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, EachString> {
 public:
  explicit EachString(bool (*call)(const char*, const char*)) : call_(call) {}
  bool Default() { return false; }
  bool RawNumber(const char*, SizeType, bool) { return false; }
  bool StartObject() { return ++depth_ == 1; }
  bool EndObject(SizeType) { return true; }
  bool Key(const char* s, SizeType n, bool) {
    key_.clear();
    key_.append(s, n);
    return strlen(key_.data()) == n;
  }
  bool String(const char* s, SizeType n, bool) {
    if (depth_ != 1) return false;
    value_.clear();
    value_.append(s, n);
    return strlen(value_.data()) == n && call_(key_.data(), value_.data());
  }

 private:
  bool (*call_)(const char*, const char*);
  int depth_ = 0;
  Buffer key_, value_;
};

}  // namespace

bool is_json(const char* text, size_t n) {
  Ignore ignore;
  return read(text, n, ignore);
}

bool is_json_object(const char* text, size_t n) {
  const size_t first = strspn(text, " \t\r\n");
  return first < n && text[first] == '{' && is_json(text, n);
}

bool is_utf8(const char* text, size_t n) {
  Buffer literal;
  return append_json_string(&literal, text, n);
}

bool append_json_string(Buffer* out, const char* text, size_t n) {
  using Validating =
      rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                        rapidjson::CrtAllocator, rapidjson::kWriteValidateEncodingFlag>;
  rapidjson::StringBuffer literal;
  Validating writer(literal);
  if (n > 0x7FFFFFFF || !writer.String(text, static_cast<SizeType>(n))) return false;
  out->append(literal.GetString(), literal.GetSize());
  return true;
}

bool json_member(const char* text, size_t n, const char* key, bool indent, Buffer* out) {
  rapidjson::StringBuffer value;
  Buffer string;
  bool is_value = false, is_text = false;
  const auto run = [&](auto& writer) {
    Member handler(key, writer, &string);
    if (!read(text, n, handler)) return false;
    is_value = handler.found_value();
    is_text = handler.found_text();
    return true;
  };
  rapidjson::PrettyWriter<rapidjson::StringBuffer> pretty(value);
  pretty.SetIndent(' ', 2);
  rapidjson::Writer<rapidjson::StringBuffer> compact(value);
  if (!(indent ? run(pretty) : run(compact))) return false;
  if (is_text) out->append(string.data(), string.size());
  if (is_value) out->append(value.GetString(), value.GetSize());
  return is_text || is_value;
}

bool json_each_string(const char* text, size_t n,
                      bool (*call)(const char* key, const char* value)) {
  EachString handler(call);
  return read(text, n, handler);
}

}  // namespace umpteenth::ump
