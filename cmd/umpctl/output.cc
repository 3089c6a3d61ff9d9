#include "cmd/umpctl/output.h"

#include <algorithm>

#include <unistd.h>

#include "apis/object.h"
#include "apis/yaml.h"
#include "base/error.h"
#include "client/jsonpath.h"
#include "client/printable.h"

namespace umpteenth::umpctl {
namespace {

std::string cell_text(const json::Value& cell) {
  if (cell.is_null()) return "";
  return client::printable_line(cell.is_string() ? cell.as_string() : cell.dump());
}

// Data goes through pipes as it is.
bool to_terminal(const std::ostream& out) {
  return &out == &std::cout && isatty(STDOUT_FILENO) != 0;
}

size_t display_width(const std::string& text) {  // code points: names and ages are ASCII anyway
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string labels_text(const json::Value& object) {
  const json::Value& labels = object.at_path({"metadata", "labels"});
  std::string text;
  if (labels.is_object())
    for (const json::Member& m : labels.members())
      text += (text.empty() ? "" : ",") + m.key + "=" + cell_text(m.value);
  return text.empty() ? "<none>" : text;
}

void print_custom_columns(std::ostream& out, const Output& output, const json::Value& object) {
  const std::string& spec = output.argument;
  std::vector<std::string> heads, paths;
  for (size_t at = 0; at <= spec.size();) {
    const size_t comma = std::min(spec.find(',', at), spec.size());
    const std::string column = spec.substr(at, comma - at);
    const size_t colon = column.find(':');
    if (colon == std::string::npos)
      throw Error(Code::bad_request, "custom-columns: \"" + column + "\" must be HEADER:.path");
    heads.push_back(column.substr(0, colon));
    std::string path = column.substr(colon + 1);
    if (!path.starts_with("{")) path = "{" + path + "}";
    paths.push_back(path);
    at = comma + 1;
  }
  std::vector<std::vector<std::string>> rows;
  if (output.headers) rows.push_back(heads);
  std::vector<json::Value> objects;
  if (const json::Value* items = object.find("items"))
    objects = items->items();
  else
    objects.push_back(object);
  for (const json::Value& o : objects) {
    std::vector<std::string> row;
    for (const std::string& path : paths) {
      std::string text = client::printable_line(client::jsonpath(path, o));
      row.push_back(text.empty() ? "<none>" : text);
    }
    rows.push_back(row);
  }
  out << aligned(rows);
}

}  // namespace

Output parse_output(const std::string& text) {
  using Form = Output::Form;
  if (text.empty()) return {};
  if (text == "wide") return {Form::wide, ""};
  if (text == "json") return {Form::json, ""};
  if (text == "yaml") return {Form::yaml, ""};
  if (text == "name") return {Form::name, ""};
  if (text.starts_with("jsonpath=")) return {Form::jsonpath, text.substr(9)};
  if (text.starts_with("custom-columns=")) return {Form::custom_columns, text.substr(15)};
  throw Error(Code::bad_request,
              "--output is \"" + text +
                  "\", it must be json, yaml, name, wide, jsonpath=… or custom-columns=…");
}

void print_text(std::ostream& out, const std::string& text) {
  out << (to_terminal(out) ? client::printable(text) : text);
}

std::string aligned(const std::vector<std::vector<std::string>>& rows, size_t indent) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - display_width(row[i]) + 3, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string object_name(const apis::Kind& kind, const std::string& name) {
  const bool core = kind.kind == "Event" || kind.kind == "Namespace";
  return kind.singular + (core ? "" : "." + std::string(apis::kGroup)) + "/" + name;
}

bool told_before(const json::Value& a, const json::Value& b) {
  const std::string a_time = a.get_string("lastTimestamp"), b_time = b.get_string("lastTimestamp");
  return a_time != b_time ? a_time < b_time : apis::revision_of(a) < apis::revision_of(b);
}

void sort_events(json::Value& table) {
  json::Value* rows = table.find("rows");
  if (!rows || !rows->is_array()) return;
  std::stable_sort(rows->items().begin(), rows->items().end(),
                   [](const json::Value& a, const json::Value& b) {
                     return told_before(a.get("object"), b.get("object"));
                   });
}

json::Value without_managed_fields(json::Value object) {
  if (json::Value* items = object.find("items"))
    for (json::Value& item : items->items()) item = without_managed_fields(std::move(item));
  if (json::Value* metadata = object.find("metadata")) metadata->erase("managedFields");
  return object;
}

void print_object(std::ostream& out, const Output& output, const apis::Kind& kind,
                  const json::Value& object) {
  switch (output.form) {
    case Output::Form::json:
      out << object.dump_pretty() << "\n";
      break;
    case Output::Form::yaml:
      out << apis::to_yaml(object);
      break;
    case Output::Form::jsonpath:
      print_text(out, client::jsonpath(output.argument, object));
      break;
    case Output::Form::custom_columns:
      print_custom_columns(out, output, object);
      break;
    default:
      if (const json::Value* items = object.find("items")) {
        for (const json::Value& item : items->items())
          out << object_name(kind, apis::name_of(item)) << "\n";
      } else {
        out << object_name(kind, apis::name_of(object)) << "\n";
      }
  }
}

void TablePrinter::print(std::ostream& out, const json::Value& table) {
  if (const json::Value& columns = table.get("columnDefinitions"); columns.size() > 0)
    columns_ = columns;
  if (!columns_.is_array()) return;
  std::vector<size_t> shown;
  for (size_t i = 0; i < columns_.size(); ++i)
    if (options_.wide || columns_.items()[i].get_int("priority") == 0) shown.push_back(i);

  std::vector<std::vector<std::string>> lines;
  if (!headed_ && options_.headers) {
    std::vector<std::string> head;
    if (options_.show_namespace) head.push_back("NAMESPACE");
    for (size_t i : shown) head.push_back(upper(columns_.items()[i].get_string("name")));
    for (const std::string& label : options_.label_columns)
      head.push_back(
          upper(label.substr(label.rfind('/') == std::string::npos ? 0 : label.rfind('/') + 1)));
    if (options_.show_labels) head.push_back("LABELS");
    lines.push_back(head);
  }
  headed_ = true;
  if (const json::Value& rows = table.get("rows"); rows.is_array())
    for (const json::Value& row : rows.items()) {
      std::vector<std::string> line;
      const json::Value& object = row.get("object");
      if (options_.show_namespace) line.push_back(apis::namespace_of(object));
      const json::Value& cells = row.get("cells");
      for (size_t i : shown) {
        std::string text = i < cells.size() ? cell_text(cells.items()[i]) : "";
        if (i == 0 && options_.show_kind) text = options_.kind_prefix + text;
        line.push_back(text);
      }
      for (const std::string& label : options_.label_columns)
        line.push_back(apis::label_of(object, label));
      if (options_.show_labels) line.push_back(labels_text(object));
      lines.push_back(line);
    }

  for (const auto& line : lines) {
    widths_.resize(std::max(widths_.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i)
      widths_[i] = std::max(widths_[i], display_width(line[i]));
  }
  for (const auto& line : lines) {
    std::string text;
    for (size_t i = 0; i < line.size(); ++i) {
      text += line[i];
      if (i + 1 < line.size()) text.append(widths_[i] - display_width(line[i]) + 3, ' ');
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out << text << "\n";
  }
}

}  // namespace umpteenth::umpctl
