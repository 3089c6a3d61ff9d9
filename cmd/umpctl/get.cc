// get and describe.
#include <algorithm>
#include <iostream>
#include <thread>

#include "apis/object.h"
#include "apis/serve.h"
#include "apis/yaml.h"
#include "base/error.h"
#include "client/jsonpath.h"
#include "client/printable.h"
#include "cmd/umpctl/command.h"
#include "cmd/umpctl/describe.h"
#include "cmd/umpctl/output.h"
#include "cmd/umpctl/persist.h"
#include "cmd/umpctl/resources.h"

namespace umpteenth::umpctl {
namespace {

constexpr char kTable[] = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

client::Params selector_params(Invocation& line) {
  client::Params params;
  if (line.given("selector")) params.emplace_back("labelSelector", line.get("selector"));
  if (line.given("field-selector"))
    params.emplace_back("fieldSelector", line.get("field-selector"));
  return params;
}

// All pages of a list, joined in `rows` or `items`.
json::Value list_all(Invocation& line, const Target& t, client::Params params,
                     const std::string& accept, const char* entries) {
  const std::string path = client::Client::path_of(*t.kind, t.ns, t.name);
  json::Value all;
  for (std::string next;;) {
    client::Params page_params = params;
    if (t.name.empty())
      page_params.emplace_back("limit", line.given("chunk-size") ? line.get("chunk-size") : "500");
    if (!next.empty()) page_params.emplace_back("continue", next);
    json::Value page =
        json::parse(line.client().send("GET", path, page_params, "", "", accept).body);
    next = page.at_path({"metadata", "continue"}).is_string()
               ? page.at_path({"metadata", "continue"}).as_string()
               : "";
    if (all.is_null()) {
      all = std::move(page);
    } else if (json::Value* more = page.find(entries); more && more->is_array()) {
      for (json::Value& v : more->items()) all[entries].push_back(std::move(v));
    }
    if (next.empty()) return all;
  }
}

void sort_rows(json::Value& table, std::string path) {
  if (!path.starts_with("{")) path = "{" + path + "}";
  json::Value* rows = table.find("rows");
  if (!rows || !rows->is_array()) return;
  const auto key = [&](const json::Value& row) {
    return client::jsonpath(path, row.get("object"));
  };
  std::stable_sort(rows->items().begin(), rows->items().end(),
                   [&](const json::Value& a, const json::Value& b) { return key(a) < key(b); });
}

void sort_items(json::Value& list, std::string path) {
  if (!path.starts_with("{")) path = "{" + path + "}";
  json::Value* items = list.find("items");
  if (!items || !items->is_array()) return;
  std::stable_sort(items->items().begin(), items->items().end(),
                   [&](const json::Value& a, const json::Value& b) {
                     return client::jsonpath(path, a) < client::jsonpath(path, b);
                   });
}

struct Watch {
  Invocation& line;
  const Target& target;
  const Output& output;
  TablePrinter& printer;

  // From the revision on, again and again; ends when the server refuses or stays away.
  void follow(std::string revision) {
    const bool table = output.form == Output::Form::table || output.form == Output::Form::wide;
    for (;;) {
      persistently([&] {
        client::Params params = selector_params(line);
        if (!target.name.empty())
          params.emplace_back("fieldSelector", "metadata.name=" + target.name);
        params.emplace_back("watch", "true");
        params.emplace_back("resourceVersion", revision);
        params.emplace_back("allowWatchBookmarks", "true");
        line.client().stream(client::Client::path_of(*target.kind, target.ns), params,
                             table ? kTable : "application/json", [&](std::string_view text) {
                               if (text.empty()) return true;
                               const json::Value event = json::parse(text);
                               show(event, table, revision);
                               std::cout.flush();
                               return std::cout.good();
                             });
      });
      if (!std::cout.good()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the stream ended: go on there
    }
  }

  void show(const json::Value& event, bool table, std::string& revision) {
    const std::string type = event.get_string("type");
    const json::Value& object = event.get("object");
    if (type == "ERROR")
      throw Error(Code::expired, object.get_string("message", "the watch failed"));
    const json::Value& rows = object.get("rows");
    const json::Value& meta_of = table && rows.size() > 0 ? rows.items()[0].get("object") : object;
    const std::string at = meta_of.at_path({"metadata", "resourceVersion"}).is_string()
                               ? meta_of.at_path({"metadata", "resourceVersion"}).as_string()
                               : "";
    if (!at.empty()) revision = at;
    if (type == "BOOKMARK") return;
    if (table)
      printer.print(std::cout, object);
    else
      print_object(std::cout, output, *target.kind, without_managed_fields(object));
  }
};

// Of what was named: whether any was shown, and what the server said of those that are not there.
struct Found {
  bool any = false;
  std::vector<std::string> missing;
};

// The others are shown all the same; but a watch of nothing would be silent for ever.
bool may_miss(Invocation& line, const Error& e) {
  const bool watches = line.on("watch") || line.on("watch-only");
  return e.code() == Code::not_found && (!watches || line.on("ignore-not-found"));
}

Found get_tables(Invocation& line, const Output& output, const std::vector<Target>& wanted) {
  Found found;
  bool several = false;
  for (const Target& t : wanted) several |= t.kind != wanted[0].kind;
  for (size_t i = 0; i < wanted.size();) {
    const Target& first = wanted[i];
    TablePrinter::Options options;
    options.wide = output.form == Output::Form::wide;
    options.headers = !line.on("no-headers");
    options.show_namespace = line.on("all-namespaces") && first.kind->namespaced();
    options.show_labels = line.on("show-labels");
    for (const std::string& label : line.all("label-columns"))
      options.label_columns.push_back(label);
    options.show_kind = several || line.on("show-kind");
    options.kind_prefix = object_name(*first.kind, "");
    TablePrinter printer(options);
    json::Value all;
    std::string revision = "0";
    for (; i < wanted.size() && wanted[i].kind == first.kind; ++i) {
      client::Params params = wanted[i].name.empty() ? selector_params(line) : client::Params{};
      if (line.given("sort-by")) params.emplace_back("includeObject", "Object");
      json::Value table;
      try {
        table = list_all(line, wanted[i], params, kTable, "rows");
      } catch (const Error& e) {
        if (!may_miss(line, e)) throw;
        found.missing.push_back(e.message());
        continue;
      }
      revision = table.at_path({"metadata", "resourceVersion"}).is_string()
                     ? table.at_path({"metadata", "resourceVersion"}).as_string()
                     : revision;
      if (all.is_null())
        all = std::move(table);
      else if (json::Value* rows = table.find("rows"); rows && rows->is_array())
        for (json::Value& row : rows->items()) all["rows"].push_back(std::move(row));
    }
    if (line.given("sort-by") && !all.is_null()) sort_rows(all, line.get("sort-by"));
    if (all.get("rows").size() > 0) {
      if (found.any) std::cout << "\n";
      if (!line.on("watch-only")) printer.print(std::cout, all);
      found.any = true;
    }
    if (line.on("watch") || line.on("watch-only")) {
      std::cout.flush();
      Watch{line, first, output, printer}.follow(revision);
    }
  }
  return found;
}

Found get_objects(Invocation& line, const Output& output, const std::vector<Target>& wanted) {
  json::Value list = json::Value::object({{"apiVersion", "v1"}, {"kind", "List"}});
  list.set("items", json::Value::array());
  std::string revision = "0";
  const bool single = wanted.size() == 1 && !wanted[0].name.empty();
  Found found;
  for (const Target& t : wanted) {
    try {
      json::Value got = t.name.empty()
                            ? list_all(line, t, selector_params(line), "application/json", "items")
                            : line.client().get(*t.kind, t.ns, t.name);
      if (const json::Value& rv = got.at_path({"metadata", "resourceVersion"}); rv.is_string())
        revision = rv.as_string();
      if (!line.on("show-managed-fields")) got = without_managed_fields(std::move(got));
      if (single) {
        print_object(std::cout, output, *t.kind, got);
      } else if (output.form == Output::Form::name) {
        if (line.given("sort-by")) sort_items(got, line.get("sort-by"));
        print_object(std::cout, output, *t.kind, got);
        if (got.get("items").size() > 0) list["items"].push_back(nullptr);
        continue;
      } else if (json::Value* items = got.find("items")) {
        for (json::Value& item : items->items()) list["items"].push_back(std::move(item));
      } else {
        list["items"].push_back(std::move(got));
      }
    } catch (const Error& e) {
      if (!may_miss(line, e)) throw;
      found.missing.push_back(e.message());
    }
  }
  if (line.given("sort-by")) sort_items(list, line.get("sort-by"));
  if (!single && output.form != Output::Form::name)
    print_object(std::cout, output, *wanted[0].kind, list);
  if (line.on("watch")) {
    std::cout.flush();
    TablePrinter printer({});
    Watch{line, wanted[0], output, printer}.follow(revision);
  }
  found.any = single || list["items"].size() > 0 || output.form != Output::Form::name;
  return found;
}

int get_raw(Invocation& line) {
  std::cout << line.client().send("GET", line.get("raw")).body;
  return kOk;
}

int get(Invocation& line) {
  if (line.given("raw")) return get_raw(line);
  Output output = parse_output(line.get("output"));
  output.headers = !line.on("no-headers");
  std::vector<Target> wanted;
  if (line.given("filename"))
    for (const Manifest& m : manifests(line)) wanted.push_back({m.kind, m.ns, m.name});
  else
    wanted = targets(line);
  if (line.on("all-namespaces"))
    for (Target& t : wanted) t.ns.clear();
  if (line.given("at")) {
    if (wanted.size() != 1 || wanted[0].name.empty())
      throw Error(Code::bad_request, "--at needs exactly one object");
    const Target& t = wanted[0];
    const std::string path = client::Client::path_of(*t.kind, t.ns, t.name);
    const json::Value object =
        json::parse(line.client().send("GET", path, {{"revision", line.get("at")}}).body);
    Output form = output.form == Output::Form::table ? Output{Output::Form::yaml, ""} : output;
    print_object(std::cout, form, *t.kind, without_managed_fields(object));
    return kOk;
  }
  if ((line.on("watch") || line.on("watch-only")) && wanted.size() > 1)
    throw Error(Code::bad_request, "--watch works with one kind or one object");
  const bool tables = output.form == Output::Form::table || output.form == Output::Form::wide;
  const Found found = tables ? get_tables(line, output, wanted) : get_objects(line, output, wanted);
  if (line.on("ignore-not-found")) return kOk;
  if (!found.missing.empty()) {
    std::cout.flush();
    for (const std::string& message : found.missing)
      std::cerr << "Error from server (NotFound): " << client::printable(message) << "\n";
    return kError;
  }
  if (!found.any) {
    std::string where = wanted[0].kind->namespaced() && !line.on("all-namespaces")
                            ? " in " + line.ns() + " namespace."
                            : "";
    std::cerr << "No resources found" << where << "\n";
  }
  return kOk;
}

json::Value events_about(Invocation& line, const Target& t, const json::Value& object) {
  const std::string ns = t.ns.empty() ? "default" : t.ns;
  return json::parse(
      line.client()
          .send("GET", "/api/v1/namespaces/" + ns + "/events",
                {{"fieldSelector", "involvedObject.kind=" + t.kind->kind +
                                       ",involvedObject.name=" + apis::name_of(object)}})
          .body);
}

int describe(Invocation& line) {
  bool first = true;
  for (const Target& t : targets(line)) {
    std::vector<json::Value> objects;
    if (!t.name.empty()) {
      try {
        objects.push_back(line.client().get(*t.kind, t.ns, t.name));
      } catch (const Error& e) {
        if (e.code() != Code::not_found) throw;
      }
    }
    if (objects.empty()) {  // all, or those whose name begins so
      json::Value list =
          list_all(line, {t.kind, t.ns, ""}, selector_params(line), "application/json", "items");
      for (json::Value& item : list["items"].items())
        if (apis::name_of(item).starts_with(t.name)) objects.push_back(std::move(item));
      if (objects.empty() && !t.name.empty())
        throw Error(Code::not_found, t.kind->plural + " \"" + t.name + "\" not found");
    }
    for (const json::Value& object : objects) {
      if (!first) std::cout << "\n\n";
      first = false;
      std::cout << describe_text(*t.kind, object, events_about(line, t, object));
    }
  }
  if (first) std::cerr << "No resources found in " << line.ns() << " namespace.\n";
  return kOk;
}

}  // namespace

void add_get_commands(std::vector<Command>& table) {
  table.push_back(
      {"get",
       "TYPE [NAME…] | TYPE/NAME…",
       "Show objects",
       "umpctl get jobs\numpctl get runs -w -l umpteenth.dev/job=hello\numpctl get job/hello -o "
       "yaml\n"
       "umpctl get runs --field-selector status.phase=Failed -A",
       {kOutputFlag,
        {"watch", 'w', "", "go on showing changes"},
        {"watch-only", 0, "", "show changes only"},
        kSelectorFlag,
        kFieldSelectorFlag,
        kAllNamespacesFlag,
        {"sort-by", 0, "JSONPATH", "sort by that field"},
        {"no-headers", 0, "", "no column heads"},
        {"show-labels", 0, "", "a column of labels"},
        {"label-columns", 'L', "LABEL", "a column of that label"},
        {"show-kind", 0, "", "the kind before the name"},
        {"ignore-not-found", 0, "", "nothing found is no error"},
        {"show-managed-fields", 0, "", "with -o json and yaml: metadata.managedFields too"},
        {"chunk-size", 0, "N", "objects a request", "500"},
        {"at", 0, "REVISION", "one object as of that revision (its spec)"},
        {"raw", 0, "PATH", "the bytes of any path of the API"},
        kFileFlag,
        kRecursiveFlag},
       get});
  table.push_back({"describe",
                   "TYPE [NAME] | TYPE/NAME",
                   "Show an object with its events",
                   "A NAME that no object has matches those that begin so.",
                   {kSelectorFlag},
                   describe});
}

}  // namespace umpteenth::umpctl
