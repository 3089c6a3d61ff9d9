#include "apis/yaml.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace umpteenth::apis {
namespace {

std::string repeat(const std::string& part, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += part;
  return all;
}

std::string refusal(const std::string& text) {
  try {
    return "accepted: " + parse_yaml_one(text).dump();
  } catch (const Error& e) {
    EXPECT_TRUE(e.code() == Code::bad_request || e.code() == Code::too_large);
    return e.message();
  }
}

TEST(Yaml, scalars_follow_the_core_schema_of_1_2) {
  const std::pair<const char*, const char*> table[] = {
      {"a: yes", R"({"a":"yes"})"},
      {"a: no", R"({"a":"no"})"},
      {"a: on", R"({"a":"on"})"},
      {"a: off", R"({"a":"off"})"},
      {"a: y", R"({"a":"y"})"},
      {"a: 010", R"({"a":"010"})"},
      {"a: -010", R"({"a":"-010"})"},
      {"a: 00", R"({"a":"00"})"},
      {"a: 1_000", R"({"a":"1_000"})"},
      {"a: 12:30:45", R"({"a":"12:30:45"})"},
      {"a: 2026-11-30", R"({"a":"2026-11-30"})"},
      {"a: 10", R"({"a":10})"},
      {"a: -7", R"({"a":-7})"},
      {"a: +7", R"({"a":7})"},
      {"a: 0", R"({"a":0})"},
      {"a: 0x1F", R"({"a":31})"},
      {"a: 0o17", R"({"a":15})"},
      {"a: 1.5", R"({"a":1.5})"},
      {"a: .5", R"({"a":0.5})"},
      {"a: 1e3", R"({"a":1000.0})"},
      {"a: 1.2.3", R"({"a":"1.2.3"})"},
      {"a: .inf", R"({"a":".inf"})"},
      {"a: .nan", R"({"a":".nan"})"},
      {"a: 1e999", R"({"a":"1e999"})"},
      {"a: 9223372036854775807", R"({"a":9223372036854775807})"},
      {"a: true", R"({"a":true})"},
      {"a: False", R"({"a":false})"},
      {"a: null", R"({"a":null})"},
      {"a: ~", R"({"a":null})"},
      {"a:", R"({"a":null})"},
      {"a: ''", R"({"a":""})"},
      {"a: '10'", R"({"a":"10"})"},
      {"a: \"true\"", R"({"a":"true"})"},
      {"a: \"\\u00e9\\x41\"", R"({"a":"éA"})"},
      {"a: |\n  x\n  y\n", R"({"a":"x\ny\n"})"},
      {"a: >-\n  x\n  y\n", R"({"a":"x y"})"},
      {"[1, {b: c}]", R"([1,{"b":"c"}])"},
      {"'yes': 1", R"({"yes":1})"},
      {"yes: 1", R"({"yes":1})"},
  };
  for (const auto& [text, json] : table) EXPECT_EQ(parse_yaml_one(text).dump(), json) << text;
}

TEST(Yaml, what_json_cannot_say_is_refused_with_its_place) {
  const std::pair<const char*, const char*> table[] = {
      {"a: &x 1", "line 1, column 4: anchors are not accepted"},
      {"a: &x {b: 1}", "anchors are not accepted"},
      {"a: 1\nb: *a", "line 2, column 4"},
      {"a: 1\na: 2", "line 2, column 1: duplicate key \"a\""},
      {"{a: 1, \"a\": 2}", "duplicate key \"a\""},
      {"1: x", "a key must be a string, found integer 1"},
      {"true: x", "a key must be a string, found boolean true"},
      {"null: x", "a key must be a string, found null"},
      {"~: x", "a key must be a string, found null"},
      {"? [a]\n: x", "a key must be a string, found array"},
      {"? {a: 1}\n: x", "a key must be a string, found object"},
      {"<<: {a: 1}", "merge keys are not accepted"},
      {"a: !!str 1", "tags are not accepted"},
      {"a: !secret x", "tags are not accepted"},
      {"a: !!binary aGk=", "tags are not accepted"},
      {"!!map {a: 1}", "tags are not accepted"},
      {"a: [1, 2", "invalid YAML at line"},
      {"a: \"x", "invalid YAML at line"},
      {"a: 'x", "invalid YAML at line"},
      {"a: {b: 1", "invalid YAML at line"},
      {"a: b: c", "invalid YAML at line 1"},
      {"- a\nb: c", "invalid YAML at line 2, column 1: expected the end of the document"},
      {"a: 1\n---\n- b\nc: 1", "invalid YAML at line 4, column 1: expected the end"},
      {"a:\n\tb: c", "invalid YAML at line 2"},
      {"a: \"\\q\"", "invalid YAML at line 1"},
      {"a: @x", "invalid YAML at line 1"},
      {"a: \xff", "line 1, column 4: not UTF-8"},
      {"a: \xc0\x80", "not UTF-8"},
      {"a: \xed\xa0\x80", "not UTF-8"},
      {"x: 1\na: \xf5\x80\x80\x80", "line 2, column 4: not UTF-8"},
      {"a: 1\n\x04"
       "b: 2",
       "line 2, column 1: control characters are not accepted"},
      {"a: \x01", "control characters are not accepted"},
      {"a: 1\n---\nb: 2", "expected one YAML document, found 2 (the second at line"},
      {"", "no document in the YAML text"},
      {"---\n---\n", "no document in the YAML text"},
      {"# only a comment\n", "no document in the YAML text"},
  };
  for (const auto& [text, part] : table)
    EXPECT_NE(refusal(text).find(part), std::string::npos) << text << "\n  " << refusal(text);
  EXPECT_NE(refusal(std::string("a: b\0c", 6)).find("control characters"), std::string::npos);
  EXPECT_NE(refusal(std::string("\xff\xfe"
                                "a\0:\0",
                                6))
                .find("not UTF-8"),
            std::string::npos);
}

TEST(Yaml, escapes_that_make_no_character_are_refused) {
  for (const char* text : {R"(a: "\N")", R"(a: "\_")", R"(a: "\ud800")", R"("\xff": 1)"}) {
    try {
      const json::Value value = parse_yaml_one(text);
      EXPECT_EQ(parse_yaml_one(to_yaml(value)), value) << text << " was accepted";
    } catch (const Error& e) {
      EXPECT_NE(e.message().find("line 1"), std::string::npos) << e.message();
    }
  }
  EXPECT_THROW(parse_yaml_one(R"(a: "\N")"), Error);
  EXPECT_EQ(parse_yaml_one(R"(a: "\u00e9")").get_string("a"), "\u00e9");
}

TEST(Yaml, a_byte_order_mark_and_windows_line_ends_are_accepted) {
  EXPECT_EQ(parse_yaml_one("\xEF\xBB\xBF"
                           "a: 1\r\nb: x\r\n")
                .dump(),
            R"({"a":1,"b":"x"})");
}

TEST(Yaml, many_documents_keep_their_lines) {
  const auto documents = parse_yaml("a: 1\n---\nb: 2\n---\n\n---\nc: 3\n...\n");
  ASSERT_EQ(documents.size(), 4u);
  EXPECT_EQ(documents[0].value.dump(), R"({"a":1})");
  EXPECT_EQ(documents[1].value.dump(), R"({"b":2})");
  EXPECT_TRUE(documents[2].value.is_null());
  EXPECT_EQ(documents[3].value.dump(), R"({"c":3})");
  EXPECT_EQ(documents[0].line, 1);
  EXPECT_GE(documents[3].line, 6);
}

TEST(Yaml, json_is_read_as_json_with_its_escapes) {
  EXPECT_EQ(parse_yaml_one(R"({"a":"😀\/","b":[1]})").dump(), R"({"a":"😀/","b":[1]})");
  EXPECT_EQ(parse_yaml_one("{\n\t\"a\": 1\n}").dump(), R"({"a":1})");
}

TEST(Yaml, size_depth_and_count_are_bounded) {
  EXPECT_NE(refusal("a: " + std::string(4U << 20, 'x')).find("limit is 3145728"),
            std::string::npos);
  std::string deep;
  for (int i = 0; i < 70; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_NE(refusal(deep + std::string(70, ' ') + "a: 1").find("nested deeper than 64"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(100, '[') + std::string(100, ']')).find("nested deeper than 64"),
            std::string::npos);
  std::string fits = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(parse_yaml_one(fits).is_array());
  std::string many;
  for (int i = 0; i < 1100; ++i) many += "---\na: 1\n";
  EXPECT_NE(refusal(many).find("more than 1000 YAML documents"), std::string::npos);
}

TEST(Yaml, hostile_texts_end_soon) {
  const std::string texts[] = {
      std::string(1U << 18, '['),
      std::string(1U << 18, '{'),
      std::string(1U << 18, '-'),
      "a: " + std::string(1U << 18, '!'),
      std::string(100'000, '\n') + "a: b: c",
      std::string(200'000, '?'),
      "a: \"" + std::string(1U << 18, '\\'),
      repeat("- ", 300'000),
      repeat("? ", 300'000),
      repeat("a: ", 200'000),
      repeat("[a, ", 200'000),
      repeat("{a: ", 200'000),
      repeat("'", 500'000),
      repeat("a\n", 200'000),
      repeat("&a ", 200'000),
  };
  for (const std::string& text : texts) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(refusal(text).rfind("accepted: [", 0), std::string::npos);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20))
        << text.substr(0, 20);
  }
}

TEST(Yaml, truncating_a_manifest_never_crashes) {
  const std::string text =
      "a:\n  - b: \"c d\"\n    e: |\n      f\n      g\n  - [1, {h: 'i'}]\nj: {k: [l, m]}\n";
  for (size_t n = 0; n < text.size(); ++n) refusal(text.substr(0, n));
}

// --- writing ---------------------------------------------------------------------------------

TEST(YamlOut, is_what_people_write) {
  const json::Value v = json::parse(R"({
    "apiVersion": "umpteenth.dev/v1alpha1", "kind": "Job",
    "metadata": {"name": "a", "labels": {}, "finalizers": []},
    "spec": {"instruction": "one\ntwo\n", "limits": {"maxCostUSD": 2.5, "maxTurns": 60},
             "outputs": [{"name": "x", "deep": [[1, 2], []]}, "plain"], "cron": "0 9 * * 1-5",
             "colon": "a: b", "time": "12:30", "yes": "yes", "nothing": null, "zone": "Europe/Berlin"}})");
  EXPECT_EQ(to_yaml(v), R"(apiVersion: umpteenth.dev/v1alpha1
kind: Job
metadata:
  name: a
  labels: {}
  finalizers: []
spec:
  instruction: |
    one
    two
  limits:
    maxCostUSD: 2.5
    maxTurns: 60
  outputs:
  - name: x
    deep:
    - - 1
      - 2
    - []
  - plain
  cron: 0 9 * * 1-5
  colon: "a: b"
  time: "12:30"
  "yes": "yes"
  nothing: null
  zone: Europe/Berlin
)");
}

TEST(YamlOut, nasty_strings_come_back_as_they_were) {
  const std::string nasty[] = {"",
                               " ",
                               "  lead",
                               "trail ",
                               "\n",
                               "\n\n",
                               "a\n",
                               "a\n\n\n",
                               "\na",
                               "a\nb",
                               "a \nb",
                               "a\n b",
                               " a\nb",
                               "\ta\nb",
                               "a\t\nb",
                               "a\n\tb\n",
                               "a\r\nb",
                               "\r",
                               "yes",
                               "no",
                               "null",
                               "~",
                               "true",
                               "010",
                               "0x1F",
                               "0o7",
                               "1e3",
                               "1_000",
                               ".5",
                               "-",
                               "- a",
                               "-a",
                               "?",
                               "? a",
                               ": a",
                               "a:",
                               "a: b",
                               "a #b",
                               "#a",
                               "&a",
                               "*a",
                               "!a",
                               "|",
                               ">",
                               "'",
                               "\"",
                               "%a",
                               "@a",
                               "`a",
                               "[a",
                               "]",
                               "{",
                               "}",
                               ",",
                               "a, b",
                               "---",
                               "--- a",
                               "...",
                               "a\n---\nb",
                               "a\n...\nb",
                               "<<",
                               "=",
                               "\\",
                               "\\n",
                               "é",
                               "\u00a0",
                               "a\u00a0b",
                               "\u0085",
                               "a\u0085b\n",
                               "\u2028",
                               "a\u2029b",
                               "\ufeff",
                               "\U0001F600",
                               "a\u00e9\nb",
                               "\x7f",
                               std::string("\0", 1),
                               std::string("a\0b", 3),
                               "\x1b[0m",
                               "12:30:45",
                               "2026-11-30",
                               "+1",
                               "-1",
                               "0.1",
                               "1.",
                               "inf",
                               ".inf",
                               "\xe4\xb8\xad",
                               "key: |\n  x",
                               "a\n\n  b\nc",
                               "  a\n b\n",
                               "y",
                               "N",
                               std::string(5000, 'x'),
                               std::string(5000, 'x') + "\n" + std::string(5000, 'y'),
                               "a\n#b\n",
                               "#!/bin/sh\necho hi\n",
                               "FROM x\nRUN a && \\\n    b\n"};
  for (const std::string& s : nasty) {
    const json::Value v =
        json::Value::object({{"s", s},
                             {"l", json::Value::array({s, json::Value::array({s})})},
                             {"o", json::Value::object({{s, json::Value::object({{"in", s}})}})}});
    const std::string text = to_yaml(v);
    ASSERT_NO_THROW(EXPECT_EQ(parse_yaml_one(text), v) << text) << text;
    EXPECT_EQ(parse_yaml_one(to_yaml(json::Value(json::Array{s}))).items()[0], json::Value(s));
  }
}

// Any JSON that can be sent comes back from the git file as it was.
TEST(YamlOut, random_values_come_back_as_they_were) {
  std::mt19937 random(20261130);
  const std::string alphabet = "ab:#-?\n \t'\"[]{},&*!|>%@`\\0123456789.~éÿ\u2028~nulltrue=<\r";
  const auto text = [&] {
    std::string s;
    for (size_t n = random() % 12; n > 0; --n) {
      size_t at = random() % alphabet.size();
      while ((static_cast<unsigned char>(alphabet[at]) & 0xC0) == 0x80) --at;
      s += alphabet[at];
      while (++at < alphabet.size() && (static_cast<unsigned char>(alphabet[at]) & 0xC0) == 0x80)
        s += alphabet[at];
    }
    return s;
  };
  const std::function<json::Value(int)> value = [&](int depth) -> json::Value {
    switch (random() % (depth > 0 ? 8 : 6)) {
      case 0:
        return static_cast<int64_t>(random()) - (1LL << 31);
      case 1:
        return random() % 2 == 0;
      case 2:
        return nullptr;
      case 3:
        return static_cast<double>(random()) / 1024;
      case 6: {
        json::Value a = json::Value::array();
        for (size_t n = random() % 4; n > 0; --n) a.push_back(value(depth - 1));
        return a;
      }
      case 7: {
        json::Value o = json::Value::object();
        for (size_t n = random() % 4; n > 0; --n) o.set(text(), value(depth - 1));
        return o;
      }
      default:
        return text();
    }
  };
  for (int i = 0; i < 3000; ++i) {
    const json::Value v = json::Value::object({{"v", value(4)}});
    const std::string out = to_yaml(v);
    ASSERT_NO_THROW(ASSERT_EQ(parse_yaml_one(out), v) << v.dump() << "\n" << out) << out;
  }
}

}  // namespace
}  // namespace umpteenth::apis
