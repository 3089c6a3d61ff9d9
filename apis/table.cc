// Tables: what kubectl get prints, made on the server.
#include <algorithm>

#include "apis/cells.h"
#include "apis/object.h"
#include "apis/serve.h"

namespace umpteenth::apis {
namespace {

Column name_column() {
  return {"Name", "string", "Name, unique in its kind and workspace.", 0,
          [](const json::Value& object, Time) { return json::Value(name_of(object)); }};
}

// NAME first; AGE after the narrow columns where the kind has not put it elsewhere.
std::vector<Column> all_columns(const Kind& kind) {
  std::vector<Column> columns = {name_column()};
  const bool has_age = std::any_of(kind.columns.begin(), kind.columns.end(),
                                   [](const Column& c) { return c.name == "Age"; });
  const bool has_own_time = kind.kind == "Event";  // LAST SEEN stands for it
  for (const bool wide : {false, true}) {
    for (const Column& c : kind.columns)
      if ((c.priority > 0) == wide) columns.push_back(c);
    if (!wide && !has_age && !has_own_time) columns.push_back(age_column());
  }
  return columns;
}

json::Value definition(const Column& column) {
  return json::Value::object({{"name", column.name},
                              {"type", column.type},
                              {"format", column.name == "Name" ? "name" : ""},
                              {"description", column.description},
                              {"priority", column.priority}});
}

json::Value cell(const Column& column, const json::Value& object, Time now) {
  try {
    return column.cell(object, now);
  } catch (const Error&) {  // one odd object (a status edited by hand) must not hide the others
    return "<invalid>";
  }
}

}  // namespace

json::Value partial_metadata(const json::Value& object) {
  return json::Value::object({{"kind", "PartialObjectMetadata"},
                              {"apiVersion", "meta.k8s.io/v1"},
                              {"metadata", object.get("metadata")}});
}

json::Value make_table(const Kind& kind, const std::vector<json::Value>& objects,
                       IncludeObject include, Time now, bool with_columns) {
  const std::vector<Column> columns = all_columns(kind);
  json::Value definitions = json::Value::array();
  if (with_columns)
    for (const Column& c : columns) definitions.push_back(definition(c));
  json::Value rows = json::Value::array();
  for (const json::Value& object : objects) {
    json::Value cells = json::Value::array();
    for (const Column& c : columns) cells.push_back(cell(c, object, now));
    json::Value row = json::Value::object({{"cells", std::move(cells)}});
    if (include == IncludeObject::metadata) row.set("object", partial_metadata(object));
    if (include == IncludeObject::object) row.set("object", object);
    rows.push_back(std::move(row));
  }
  json::Value table = json::Value::object(
      {{"kind", "Table"}, {"apiVersion", "meta.k8s.io/v1"}, {"metadata", json::Value::object()}});
  table.set("columnDefinitions", std::move(definitions));
  table.set("rows", std::move(rows));
  return table;
}

}  // namespace umpteenth::apis
