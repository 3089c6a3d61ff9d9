#include "apis/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <streambuf>
#include <unordered_set>

#include "apis/yaml_scalar.h"
#include "base/error.h"

namespace umpteenth::apis {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxDocuments = 1000;

[[noreturn]] void refuse(const YAML::Mark& mark, const std::string& why) {
  throw Error(Code::bad_request, "invalid YAML at line " + std::to_string(mark.line + 1) +
                                     ", column " + std::to_string(mark.column + 1) + ": " + why);
}

// Reads from memory that somebody else owns.
class ViewBuffer : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // streambuf only reads through setg
    setg(begin, begin, begin + text.size());
  }
};

// Builds JSON from yaml-cpp's events; everything that JSON cannot say is refused.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::string_view text) : text_(text) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    // yaml-cpp begins another document where it cannot go on with this one.
    if (started_ && line_text(mark.line).substr(0, 3) != "---")
      refuse(mark, "expected the end of the document or a line with ---");
    started_ = true;
    value_ = json::Value();
    frames_.clear();
    line_ = mark.line + 1;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    if (wants_key()) refuse(mark, "a key must be a string, found null");
    place(json::Value());
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases are not accepted");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    check(mark, tag, anchor);
    // yaml-cpp reads \N and \_ as Latin-1 and lets surrogates through: nobody could read it back.
    if (!is_utf8(text)) refuse(mark, "an escape sequence here does not make a character");
    const bool plain = tag == "?";
    json::Value value = plain ? resolve_plain_scalar(text) : json::Value(text);
    if (!wants_key()) return place(std::move(value));
    if (plain && text == "<<") refuse(mark, "merge keys are not accepted");
    if (!value.is_string())
      refuse(mark, std::string("a key must be a string, found ") + value.type_name() + " " + text +
                       " (put it in quotes)");
    begin_member(mark, text);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, json::Value::array());
  }
  void OnSequenceEnd() override { frames_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, json::Value::object());
  }
  void OnMapEnd() override { frames_.pop_back(); }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    refuse(mark, "anchors are not accepted");
  }

  YamlDocument take() { return {std::move(value_), line_}; }

 private:
  struct Frame {
    json::Value* value;
    bool key_next;
    std::unordered_set<std::string> keys;
  };

  static void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) refuse(mark, "anchors are not accepted");
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(mark, "tags are not accepted, found " + tag.substr(0, 64));
  }
  bool wants_key() const { return !frames_.empty() && frames_.back().key_next; }

  void begin_member(const YAML::Mark& mark, const std::string& key) {
    Frame& top = frames_.back();
    if (!top.keys.insert(key).second) refuse(mark, "duplicate key " + json::quote(key));
    top.value->members().push_back({key, json::Value()});
    top.key_next = false;
  }

  json::Value& put(json::Value value) {
    if (frames_.empty()) return value_ = std::move(value);
    Frame& top = frames_.back();
    if (top.value->is_array()) {
      top.value->items().push_back(std::move(value));
      return top.value->items().back();
    }
    top.key_next = true;
    return top.value->members().back().value = std::move(value);
  }
  void place(json::Value value) { put(std::move(value)); }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            json::Value value) {
    check(mark, tag, anchor);
    if (wants_key())
      refuse(mark, std::string("a key must be a string, found ") + value.type_name());
    if (frames_.size() >= kMaxDepth)
      refuse(mark, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    const bool map = value.is_object();
    frames_.push_back({&put(std::move(value)), map, {}});
  }

  // Documents come in order, so the search goes on where it ended.
  std::string_view line_text(int line) {
    for (; seen_line_ < line; ++seen_line_)
      seen_at_ = std::min(text_.find('\n', seen_at_), text_.size() - 1) + 1;
    return text_.substr(seen_at_);
  }

  std::string_view text_;
  size_t seen_at_ = 0;
  int seen_line_ = 0;
  bool started_ = false;
  json::Value value_;
  std::vector<Frame> frames_;
  int line_ = 1;
};

bool begins_json(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

}  // namespace

std::vector<YamlDocument> parse_yaml(std::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes)
    throw Error(Code::too_large, "YAML text of " + std::to_string(text.size()) +
                                     " bytes: limit is " + std::to_string(max_bytes));
  check_yaml_text(text);
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  std::vector<YamlDocument> documents;
  try {
    ViewBuffer buffer(text);
    std::istream in(&buffer);
    YAML::Parser parser(in);
    Builder builder(text);
    while (parser.HandleNextDocument(builder)) {
      if (documents.size() >= kMaxDocuments)
        throw Error(Code::bad_request,
                    "more than " + std::to_string(kMaxDocuments) + " YAML documents");
      documents.push_back(builder.take());
    }
  } catch (const YAML::Exception& e) {  // the library's own class, turned into ours here
    refuse(e.mark, e.msg);
  }
  return documents;
}

json::Value parse_yaml_one(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes && begins_json(text)) {
    try {
      return json::parse(text);
    } catch (const Error&) {  // flow style is YAML that looks like JSON: the parser below decides
    }
  }
  std::vector<YamlDocument> documents = parse_yaml(text, max_bytes);
  std::erase_if(documents, [](const YamlDocument& d) { return d.value.is_null(); });
  if (documents.empty()) throw Error(Code::bad_request, "no document in the YAML text");
  if (documents.size() > 1)
    throw Error(Code::bad_request, "expected one YAML document, found " +
                                       std::to_string(documents.size()) + " (the second at line " +
                                       std::to_string(documents[1].line) + ")");
  return std::move(documents[0].value);
}

}  // namespace umpteenth::apis
