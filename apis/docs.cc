#include "apis/docs.h"

#include <algorithm>

#include "apis/kind.h"

namespace umpteenth::apis {
namespace {

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\\|");
  return text;
}

std::string joined(const std::vector<std::string>& items) {
  std::string all;
  for (const std::string& i : items) all += (all.empty() ? "" : ", ") + i;
  return all;
}

std::string type_of(const json::Value& schema) {
  const std::string type = schema.get_string("type");
  if (type == "array") return "list of " + type_of(schema.get("items"));
  if (schema.get("additionalProperties").is_object())
    return "map of " + type_of(schema.get("additionalProperties"));
  if (type.empty()) return "any";
  const std::string format = schema.get_string("format");
  return format.empty() || format == "int64" ? type : type + " (" + format + ")";
}

std::string bounds(const json::Value& schema) {
  std::vector<std::string> all;
  const auto pair = [&](const char* low, const char* high, const std::string& unit) {
    const json::Value *min = schema.find(low), *max = schema.find(high);
    if (!min && !max) return;
    std::string text;
    if (min && max)
      text = min->dump() + " to " + max->dump();
    else
      text = (min ? "at least " : "at most ") + (min ? min : max)->dump();
    all.push_back(text + unit);
  };
  if (const json::Value* values = schema.find("enum")) {
    std::string text;
    for (const json::Value& v : values->items())
      text += (text.empty() ? "`" : " `") + v.as_string() + "`";
    all.push_back(text);
  }
  pair("minimum", "maximum", "");
  pair("minLength", "maxLength", " characters");
  pair("minItems", "maxItems", " items");
  pair("", "maxProperties", " entries");
  if (const json::Value* pattern = schema.find("pattern"))
    all.push_back("`" + pattern->as_string() + "`");
  if (schema.get_string("x-kubernetes-list-type") == "set") all.push_back("no duplicates");
  if (const json::Value* keys = schema.find("x-kubernetes-list-map-keys"))
    all.push_back("no two with the same " + keys->items()[0].as_string());
  return joined(all);
}

void rows(const json::Value& schema, const std::string& path, std::string& out) {
  const json::Value* properties = schema.find("properties");
  if (!properties) return;
  const json::Value& required = schema.get("required");
  for (const json::Member& m : properties->members()) {
    const std::string here = path + m.key;
    const bool must = required.is_array() &&
                      std::any_of(required.items().begin(), required.items().end(),
                                  [&](const json::Value& r) { return r.as_string() == m.key; });
    const json::Value* otherwise = m.value.find("default");
    const bool scalar_default = otherwise && !otherwise->is_object() && !otherwise->is_array();
    out += "| `" + here + "`" + (must ? " (required)" : "") + " | " + type_of(m.value) + " | " +
           cell(bounds(m.value)) + " | " +
           (scalar_default ? "`" + cell(otherwise->dump()) + "`" : "") + " | " +
           cell(m.value.get_string("description")) + " |\n";
    const json::Value* inner = &m.value;
    std::string suffix = ".";
    while (inner->get("items").is_object() || inner->get("additionalProperties").is_object()) {
      const bool list = inner->get("items").is_object();
      inner = &inner->get(list ? "items" : "additionalProperties");
      suffix = (list ? "[]" : ".KEY") + suffix;
    }
    rows(*inner, here + suffix, out);
  }
}

void table(const json::Value& schema, const std::string& path, std::string& out) {
  out += "| field | type | bounds | default | what it says |\n|---|---|---|---|---|\n";
  rows(schema, path, out);
  out += "\n";
}

void columns(const Kind& kind, std::string& out) {
  std::vector<std::string> narrow = {"Name"}, wide;
  bool age = false;
  for (const Column& c : kind.columns) {
    (c.priority > 0 ? wide : narrow).push_back(c.name);
    age = age || c.name == "Age";
  }
  if (!age) narrow.push_back("Age");
  out += "Columns: " + joined(narrow) +
         (wide.empty() ? "" : "; with `-o wide` also " + joined(wide)) + ".\n\n";
}

void section(const Kind& kind, std::string& out) {
  out += "## " + kind.kind + "\n\n" + kind.description + "\n\n";
  out += "`" + kind.group_resource() + "`" +
         (kind.short_names.empty() ? "" : ", short " + joined(kind.short_names)) + "; " +
         (kind.namespaced() ? "in a workspace" : "cluster-scoped") + "; kept in " +
         (kind.storage == Storage::git ? "git" : "the database") + "; names have at most " +
         std::to_string(kind.max_name) + " characters" +
         (kind.field_selectors.empty() ? "" : "; field selectors " + joined(kind.field_selectors)) +
         ".\n\n";
  columns(kind, out);
  out += "### spec\n\n";
  table(kind.spec_schema, "spec.", out);
  out += "### status\n\n";
  table(kind.status_schema, "status.", out);
}

}  // namespace

std::string reference_markdown() {
  std::string out =
      "# Resources\n\n"
      "Made from the kinds in `apis/`; a test keeps it so (`ACCEPT=1` rewrites it).\n\n"
      "Every document has `apiVersion: " +
      std::string(kGroupVersion) +
      "`, `kind`, `metadata` and `spec`. A field that is not here is refused, warned about or "
      "dropped, as the client asks. Defaults are filled in when a resource is written, so what is "
      "read back is complete. References to what does not exist are accepted; a condition says "
      "what is missing.\n\n";
  for (const Kind* k : kinds()) section(*k, out);
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

}  // namespace umpteenth::apis
