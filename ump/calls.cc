// The commands that job code calls. A usage error is found before the broker is looked for.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ump/broker_client.h"
#include "ump/json.h"
#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

constexpr size_t kMaxValue = 8U << 20;

// argv[0], or stdin where that is absent or "-"; stdin loses its trailing newlines.
int read_value(int argc, char** argv, Buffer* value) {
  if (argc > 0 && strcmp(argv[0], "-") != 0) {
    value->append(argv[0]);
  } else {
    if (!read_all(STDIN_FILENO, kMaxValue, value)) {
      complain_errno("cannot read the value from stdin");
      return kFailed;
    }
    size_t n = value->size();
    while (n > 0 && (value->data()[n - 1] == '\n' || value->data()[n - 1] == '\r')) --n;
    value->truncate(n);
  }
  return is_utf8(value->data(), value->size()) ? kOk : usage("the value is not UTF-8 text");
}

void append_member(Buffer* body, const char* name, const char* text, size_t n) {
  body->push_back(body->size() == 0 ? '{' : ',');
  append_json_string(body, name, strlen(name));
  body->push_back(':');
  append_json_string(body, text, n);
}

void append_raw_member(Buffer* body, const char* name, const Buffer& json) {
  body->push_back(body->size() == 0 ? '{' : ',');
  append_json_string(body, name, strlen(name));
  body->push_back(':');
  body->append(json.data(), json.size());
}

int post(const char* path, Buffer* body) {
  body->push_back('}');
  Answer answer;
  return call_broker_ok("POST", path, body, &answer) ? kOk : kFailed;
}

int post_text(const char* path, const char* member, const Buffer& text) {
  Buffer body;
  append_member(&body, member, text.data(), text.size());
  return post(path, &body);
}

int print(const Buffer& text) {
  if (write_all(STDOUT_FILENO, text.data(), text.size()) && write_all(STDOUT_FILENO, "\n", 1))
    return kOk;
  complain_errno("cannot write to stdout");
  return kFailed;
}

bool join(int argc, char** argv, Buffer* text) {
  for (int i = 0; i < argc; ++i) {
    if (i > 0) text->push_back(' ');
    text->append(argv[i]);
  }
  return is_utf8(text->data(), text->size());
}

// "/v1/state/" and the key, of which a slash stays one.
void state_path(const char* key, Buffer* path) {
  path->append("/v1/state/");
  for (; *key; ++key) {
    const auto c = static_cast<unsigned char>(*key);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain || strchr("-_~/", c)) {
      path->push_back(*key);
      continue;
    }
    char escaped[4];
    snprintf(escaped, sizeof escaped, "%%%02X", c);
    path->append(escaped);
  }
}

int state_get(const char* key) {
  Buffer path, value;
  state_path(key, &path);
  Answer answer;
  if (!call_broker("GET", path.data(), nullptr, &answer)) return kFailed;
  if (answer.status == 404) return kFailed;  // a missing key prints nothing
  if (answer.status != 200) {
    complain_about(answer);
    return kFailed;
  }
  if (json_member(answer.body.data(), answer.body.size(), "value", false, &value))
    return print(value);
  complain("the broker's answer has no value");
  return kFailed;
}

int state_set(int argc, char** argv) {
  Buffer path, value, body;
  if (const int bad = read_value(argc - 1, argv + 1, &value); bad != kOk) return bad;
  state_path(argv[0], &path);
  append_member(&body, "value", value.data(), value.size());
  body.push_back('}');
  Answer answer;
  return call_broker_ok("PUT", path.data(), &body, &answer) ? kOk : kFailed;
}

int state_list() {
  Answer answer;
  return call_broker_ok("GET", "/v1/state", nullptr, &answer) ? print(answer.body) : kFailed;
}

bool is_key(const char* key) { return *key != '\0' && is_utf8(key, strlen(key)); }

}  // namespace

int command_state(int argc, char** argv) {
  const char* verb = argc > 0 ? argv[0] : "";
  if (strcmp(verb, "list") == 0)
    return argc == 1 ? state_list() : usage("state list takes no argument");
  const bool get = strcmp(verb, "get") == 0;
  if (!get && strcmp(verb, "set") != 0)
    return usage("usage: ump state get KEY | set KEY [VALUE|-] | list");
  if (argc < 2 || argc > (get ? 2 : 3))
    return usage(get ? "usage: ump state get KEY" : "usage: ump state set KEY [VALUE|-]");
  if (!is_key(argv[1])) return usage("the key must be UTF-8 text and not empty");
  return get ? state_get(argv[1]) : state_set(argc - 1, argv + 1);
}

int command_output(int argc, char** argv) {
  if (argc < 2 || argc > 3 || strcmp(argv[0], "set") != 0)
    return usage("usage: ump output set KEY [VALUE|-]");
  if (!is_key(argv[1])) return usage("the key must be UTF-8 text and not empty");
  Buffer value, body;
  if (const int bad = read_value(argc - 2, argv + 2, &value); bad != kOk) return bad;
  append_member(&body, "key", argv[1], strlen(argv[1]));
  if (is_json(value.data(), value.size()))
    append_raw_member(&body, "value", value);
  else
    append_member(&body, "value", value.data(), value.size());
  return post("/v1/output", &body);
}

int command_step(int argc, char** argv) {
  Buffer name;
  if (argc == 0) return usage("usage: ump step NAME…");
  if (!join(argc, argv, &name)) return usage("the name is not UTF-8 text");
  if (name.size() == 0) return usage("the step has no name");
  return post_text("/v1/step", "name", name);
}

int command_summary(int argc, char** argv) {
  if (argc > 1) return usage("usage: ump summary [TEXT|-]");
  Buffer text;
  if (const int bad = read_value(argc, argv, &text); bad != kOk) return bad;
  return post_text("/v1/summary", "summary", text);
}

int command_fail(int argc, char** argv) {
  Buffer reason;
  if (argc == 0) reason.append("the script reported a failure");
  if (!join(argc, argv, &reason)) return usage("the reason is not UTF-8 text");
  (void)post_text("/v1/fail", "reason", reason);
  return kFailed;
}

int command_llm(int argc, char** argv) {
  const char* model = "utility";
  const char* system = nullptr;
  const char* schema_file = nullptr;
  Buffer prompt, schema, tokens, body;
  int i = 0;
  for (; i < argc && strncmp(argv[i], "--", 2) == 0; ++i) {
    const char* flag = argv[i];
    if (strcmp(flag, "--") == 0) {
      ++i;
      break;
    }
    if (++i == argc) return usage("llm: %s needs a value", flag);
    long n = 0;
    if (strcmp(flag, "--model") == 0) {
      model = argv[i];
    } else if (strcmp(flag, "--system") == 0) {
      system = argv[i];
    } else if (strcmp(flag, "--schema") == 0) {
      schema_file = argv[i];
    } else if (strcmp(flag, "--max-tokens") != 0) {
      return usage("llm: unknown option %s", flag);
    } else if (!parse_number(argv[i], 1, 16000, &n)) {
      return usage("llm: --max-tokens must be a number from 1 to 16000");
    } else {
      tokens.clear();
      tokens.append_number(n);
    }
  }
  if (argc - i > 1) return usage("llm: more than one prompt; put it in quotes");
  if (strcmp(model, "utility") != 0 && strcmp(model, "agent") != 0)
    return usage("llm: --model must be utility or agent");
  if (system && !is_utf8(system, strlen(system))) return usage("llm: --system is not UTF-8 text");
  if (schema_file) {
    if (!read_file(schema_file, kMaxValue, &schema)) {
      complain_errno("llm: cannot read the schema %s", schema_file);
      return kUsage;
    }
    if (!is_json_object(schema.data(), schema.size()))
      return usage("llm: the schema %s is not a JSON object", schema_file);
  }
  if (const int bad = read_value(argc - i, argv + i, &prompt); bad != kOk) return bad;
  if (prompt.size() == 0) return usage("llm: the prompt is empty");

  append_member(&body, "model", model, strlen(model));
  append_member(&body, "prompt", prompt.data(), prompt.size());
  if (system) append_member(&body, "system", system, strlen(system));
  if (schema_file) append_raw_member(&body, "schema", schema);
  if (tokens.size() > 0) append_raw_member(&body, "maxTokens", tokens);
  body.push_back('}');
  Answer answer;
  if (!call_broker_ok("POST", "/v1/llm", &body, &answer)) return kFailed;
  Buffer text;
  if (json_member(answer.body.data(), answer.body.size(), schema_file ? "json" : "text", true,
                  &text))
    return print(text);
  complain("the broker's answer has no %s", schema_file ? "json" : "text");
  return kFailed;
}

}  // namespace umpteenth::ump
