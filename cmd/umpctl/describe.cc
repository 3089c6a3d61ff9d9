#include "cmd/umpctl/describe.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "apis/object.h"
#include "client/printable.h"
#include "cmd/umpctl/output.h"

namespace umpteenth::umpctl {
namespace {

bool upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

constexpr std::string_view kUnits[] = {"MiB", "GiB", "KiB", "MTok"};
constexpr std::pair<std::string_view, std::string_view> kSpelled[] = {
    {"Api", "API"}, {"Cpus", "CPUs"}, {"Dns", "DNS"},   {"Id", "ID"},   {"Ip", "IP"},
    {"Mcp", "MCP"}, {"Ms", "ms"},     {"Pids", "PIDs"}, {"Uid", "UID"}, {"Url", "URL"}};

// The length of the word that begins there: a unit, a run of capitals, or a capital and what
// follows.
size_t word_length(std::string_view rest) {
  for (const std::string_view unit : kUnits)
    if (rest.starts_with(unit)) return unit.size();
  size_t n = 1;
  if (rest.size() > 1 && upper(rest[0]) && upper(rest[1])) {
    while (n < rest.size() && upper(rest[n])) ++n;
    return n < rest.size() ? n - 1 : n;  // the last capital begins the next word
  }
  while (n < rest.size() && !upper(rest[n])) ++n;
  return n;
}

struct Line {
  std::string key;    // "" = more of the line before
  std::string value;  // "" = a heading for what is below it
  std::vector<Line> below;
};

const json::Value& nothing() {
  static const json::Value none;
  return none;
}

const json::Value& property(const json::Value& schema, const std::string& key) {
  if (key == "jobSpec") return apis::find_kind_by_name("Job")->spec_schema;  // a copy of a Job's
  const json::Value* found = schema.get("properties").find(key);
  return found ? *found : nothing();
}

std::string plain(const json::Value& v) {
  if (v.is_string()) return v.as_string().empty() ? "<none>" : v.as_string();
  std::string text = v.dump();
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::vector<Line> lines_of(const json::Value& v, const json::Value& schema);

void add_member(std::vector<Line>& lines, const std::string& key, const json::Value& v,
                const json::Value& schema) {
  if (v.is_null()) return;
  if (v.is_object() || v.is_array()) {
    if (!v.empty()) lines.push_back({key, "", lines_of(v, schema)});
    return;
  }
  const std::string text = plain(v);
  if (text.find('\n') == std::string::npos) {
    lines.push_back({key, text, {}});
    return;
  }
  Line whole{key, "", {}};
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    whole.below.push_back({"", text.substr(at, end - at), {}});
    at = end + 1;
  }
  lines.push_back(std::move(whole));
}

std::vector<Line> lines_of(const json::Value& v, const json::Value& schema) {
  std::vector<Line> lines;
  if (v.is_object()) {
    const json::Value& values = schema.get("additionalProperties");
    for (const json::Member& m : v.members()) {
      const json::Value& own = property(schema, m.key);
      add_member(lines, own.is_null() ? m.key : field_title(m.key), m.value,
                 own.is_null() ? values : own);
    }
    return lines;
  }
  for (const json::Value& item : v.items()) {
    if (!item.is_object() && !item.is_array()) {
      lines.push_back({"", "- " + plain(item), {}});
      continue;
    }
    std::vector<Line> members = lines_of(item, schema.get("items"));
    bool first = true;
    for (Line& member : members) {
      if (!member.key.empty())
        member.key = (std::exchange(first, false) ? "- " : "  ") + member.key;
      lines.push_back(std::move(member));
    }
  }
  return lines;
}

// Values of one level begin in one column.
void write(const std::vector<Line>& lines, size_t indent, std::string& text) {
  size_t width = 0;
  for (const Line& l : lines)
    if (!l.value.empty()) width = std::max(width, l.key.size());
  for (const Line& l : lines) {
    std::string row(indent, ' ');
    if (!l.key.empty()) row += l.key + ":";
    if (!l.key.empty() && !l.value.empty()) row.append(width - l.key.size() + 2, ' ');
    row += l.value;
    text += client::printable_line(row.substr(0, row.find_last_not_of(' ') + 1)) + "\n";
    const bool item = l.key.starts_with("- ") || l.key.starts_with("  ");
    write(l.below, indent + (item ? 4 : 2), text);
  }
}

// Keys of labels and annotations are shown as they are: they are what -l takes.
void add_pairs(std::vector<Line>& lines, const std::string& head, const json::Value& pairs) {
  if (pairs.size() == 0) return;
  Line all{head, "", {}};
  for (const json::Member& m : pairs.members())
    all.below.push_back({"", m.key + "=" + plain(m.value), {}});
  lines.push_back(std::move(all));
}

void write_table(const std::string& head, const std::vector<const char*>& columns,
                 std::vector<std::vector<std::string>> rows, std::string& text) {
  if (rows.empty()) {
    text += head + ":  <none>\n";
    return;
  }
  rows.insert(rows.begin(), std::vector<std::string>(columns.begin(), columns.end()));
  text += head + ":\n" + aligned(rows, 2);
}

std::string conditions_text(const json::Value& conditions, int64_t generation) {
  std::vector<std::vector<std::string>> rows;
  for (const json::Value& c : conditions.items()) {
    const int64_t seen = c.get_int("observedGeneration", generation);
    rows.push_back(
        {c.get_string("type"), c.get_string("status"), c.get_string("reason"),
         c.get_string("lastTransitionTime"),
         client::printable_line(c.get_string("message")) +
             (seen < generation ? " (seen at generation " + std::to_string(seen) + ")" : "")});
  }
  std::string text;
  write_table("Conditions", {"TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"}, std::move(rows),
              text);
  return text;
}

std::string events_text(const json::Value& events) {
  std::vector<json::Value> told;
  if (const json::Value& items = events.get("items"); items.is_array()) told = items.items();
  std::stable_sort(told.begin(), told.end(), told_before);
  std::vector<std::vector<std::string>> rows;
  for (const json::Value& e : told)
    rows.push_back({e.get_string("lastTimestamp"), e.get_string("type"), e.get_string("reason"),
                    std::to_string(e.get_int("count", 1)),
                    client::printable_line(e.get_string("message"))});
  std::string text;
  write_table("Events", {"LAST SEEN", "TYPE", "REASON", "COUNT", "MESSAGE"}, std::move(rows), text);
  return text;
}

}  // namespace

std::string field_title(const std::string& name) {
  std::string title;
  for (size_t at = 0; at < name.size();) {
    const size_t n = word_length(std::string_view(name).substr(at));
    std::string word = name.substr(at, n);
    word[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[0])));
    for (const auto& [common, right] : kSpelled)
      if (word == common) word = right;
    title += (title.empty() ? "" : " ") + word;
    at += n;
  }
  return title;
}

std::string describe_text(const apis::Kind& kind, const json::Value& object,
                          const json::Value& events) {
  const json::Value& metadata = object.get("metadata");
  std::vector<Line> lines;
  add_member(lines, "Name", apis::name_of(object), {});
  if (kind.namespaced()) add_member(lines, "Workspace", apis::namespace_of(object), {});
  add_member(lines, "Kind", kind.kind, {});
  add_member(lines, "Created", metadata.get("creationTimestamp"), {});
  if (apis::deleting(object)) {
    add_member(lines, "Deleting Since", metadata.get("deletionTimestamp"), {});
    add_member(lines, "Waits For", metadata.get("finalizers"), {});
  }
  add_member(lines, "Generation", metadata.get("generation"), {});
  add_pairs(lines, "Labels", metadata.get("labels"));
  json::Value annotations = metadata.get("annotations");
  annotations.erase(apis::kLastApplied);
  add_pairs(lines, "Annotations", annotations);
  for (const json::Member& m : object.members()) {
    constexpr std::string_view kShown[] = {"apiVersion", "kind", "metadata", "spec", "status"};
    if (std::find(std::begin(kShown), std::end(kShown), m.key) == std::end(kShown))
      add_member(lines, field_title(m.key), m.value, property(kind.other_schema, m.key));
  }
  json::Value spec = object.get("spec");
  if (json::Value* sealed = spec.find("sealedData"); sealed && sealed->is_object())
    for (json::Member& m : sealed->members())
      m.value = "sealed";  // ciphertext tells nobody anything
  add_member(lines, "Spec", spec, kind.spec_schema);
  json::Value status = object.get("status");
  const json::Value conditions = status.get("conditions");
  status.erase("conditions");
  status.erase("observedGeneration");
  add_member(lines, "Status", status, kind.status_schema);
  std::string text;
  write(lines, 0, text);
  if (conditions.is_array()) text += conditions_text(conditions, apis::generation_of(object));
  return text + events_text(events);
}

}  // namespace umpteenth::umpctl
