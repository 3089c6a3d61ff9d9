#include "cmd/umpctl/resources.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "apis/object.h"
#include "apis/serve.h"
#include "apis/yaml.h"
#include "apis/yaml_lines.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/nearest.h"
#include "client/printable.h"
#include "cmd/umpctl/output.h"

namespace umpteenth::umpctl {

namespace fs = std::filesystem;

const Flag kFileFlag{"filename", 'f', "FILE",
                     "a manifest, a folder of them, or - for standard input"};
const Flag kRecursiveFlag{"recursive", 'R', "", "with -f FOLDER: folders below it too"};
const Flag kSelectorFlag{"selector", 'l', "LABELS",
                         "only objects with these labels: a=b,c!=d,e in (f,g),!h"};
const Flag kFieldSelectorFlag{"field-selector", 0, "FIELDS",
                              "only objects with these fields: status.phase=Failed"};
const Flag kAllNamespacesFlag{"all-namespaces", 'A', "", "of all workspaces"};
const Flag kOutputFlag{"output", 'o', "FORM",
                       "json, yaml, name, wide, jsonpath=… or custom-columns=…"};
const Flag kDryRunFlag{"dry-run", 0,       "MODE", "none, client or server: say what would be done",
                       "none",    "client"};

const apis::Kind& kind_of_word(const std::string& word) {
  if (word == "ev" || word == "event" || word == "events") return apis::event_kind();
  if (word == "ns" || word == "namespace" || word == "namespaces") return apis::namespace_kind();
  if (const apis::Kind* kind = apis::resolve_kind(word)) return *kind;
  std::string known;
  std::vector<std::string> words{"events", "namespaces"};
  for (const apis::Kind* k : apis::kinds()) {
    known += (known.empty() ? "" : ", ") + k->plural;
    words.insert(words.end(), {k->plural, k->singular});
  }
  throw Error(Code::bad_request, "there is no kind \"" + word + "\"" + did_you_mean(word, words) +
                                     (nearest(word, words).empty() ? "; " : " ") + "there are " +
                                     known);
}

std::vector<Target> targets(Invocation& line, size_t from) {
  std::vector<Target> found;
  const std::vector<std::string>& words = line.arguments;
  if (words.size() <= from)
    throw Error(Code::bad_request, "name what: TYPE, TYPE NAME or TYPE/NAME");
  const auto add = [&](const std::string& type, const std::string& name) {
    const apis::Kind& kind = kind_of_word(type);
    found.push_back({&kind, kind.namespaced() ? line.ns() : "", name});
  };
  if (words[from].find('/') != std::string::npos) {
    for (size_t i = from; i < words.size(); ++i) {
      const size_t slash = words[i].find('/');
      if (slash == std::string::npos || slash + 1 == words[i].size())
        throw Error(Code::bad_request, "\"" + words[i] + "\" must be TYPE/NAME like the others");
      add(words[i].substr(0, slash), words[i].substr(slash + 1));
    }
    return found;
  }
  const std::string& types = words[from];
  for (size_t at = 0; at <= types.size();) {
    const size_t comma = std::min(types.find(',', at), types.size());
    const std::string type = types.substr(at, comma - at);
    at = comma + 1;
    if (type == "all") {
      for (const apis::Kind* k : apis::kinds())
        if (std::find(k->categories.begin(), k->categories.end(), "all") != k->categories.end())
          found.push_back({k, k->namespaced() ? line.ns() : "", ""});
      continue;
    }
    if (words.size() == from + 1) add(type, "");
    for (size_t i = from + 1; i < words.size(); ++i) add(type, words[i]);
  }
  return found;
}

Target one_target(Invocation& line) {
  std::vector<Target> found = targets(line);
  if (found.size() != 1 || found[0].name.empty())
    throw Error(Code::bad_request, "name exactly one object: TYPE NAME or TYPE/NAME");
  return found[0];
}

namespace {

bool is_manifest(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

void add_object(Invocation& line, json::Value object, const std::string& source,
                const Manifest::Place& place, std::vector<Manifest>& found) {
  if (object.is_null()) return;
  if (!object.is_object())
    throw Error(Code::bad_request,
                source + ": a manifest must be a mapping, this is " + object.type_name());
  const std::string kind_name = object.get_string("kind"),
                    version = object.get_string("apiVersion");
  if (kind_name.ends_with("List") && object.find("items")) {
    size_t i = 0;
    for (json::Value& item : object["items"].items()) {
      Manifest::Place below = place;
      below.prefix += "items[" + std::to_string(i++) + "].";
      add_object(line, std::move(item), source, below, found);
    }
    return;
  }
  if (kind_name.empty()) throw Error(Code::bad_request, source + ": kind is missing");
  if (version.empty()) throw Error(Code::bad_request, source + ": apiVersion is missing");
  const apis::Kind* kind = nullptr;
  if (version == "v1" && kind_name == "Namespace") kind = &apis::namespace_kind();
  if (version == apis::kGroupVersion) kind = apis::find_kind_by_name(kind_name);
  if (!kind) {
    std::vector<std::string> names;
    if (version == apis::kGroupVersion)
      for (const apis::Kind* k : apis::kinds()) names.push_back(k->kind);
    throw Error(Code::bad_request, source + ": there is no kind " + json::quote(kind_name) +
                                       " in version " + json::quote(version) +
                                       did_you_mean(kind_name, names));
  }
  Manifest m{std::move(object), kind, "", "", source, place};
  m.name = apis::name_of(m.object);
  if (m.name.empty() && m.object.at_path({"metadata", "generateName"}).is_null())
    throw Error(Code::bad_request, source + ": metadata.name is missing");
  if (kind->namespaced()) {
    const std::string own = apis::namespace_of(m.object);
    const std::string asked = line.get("namespace");
    if (!own.empty() && !asked.empty() && own != asked)
      throw Error(Code::bad_request, source + ": metadata.namespace is " + json::quote(own) +
                                         " but --namespace is " + json::quote(asked));
    m.ns = own.empty() ? line.ns() : own;
    m.object["metadata"].set("namespace", m.ns);
  }
  found.push_back(std::move(m));
}

void add_text(Invocation& line, const std::string& text, const std::string& name,
              std::vector<Manifest>& found) {
  std::vector<apis::YamlDocument> documents;
  try {
    documents = apis::parse_yaml(text);
  } catch (Error& e) {
    throw e.in(name);
  }
  Manifest::Place place{name, std::make_shared<const std::string>(text)};
  for (apis::YamlDocument& d : documents) {
    add_object(line, std::move(d.value), name + ":" + std::to_string(d.line), place, found);
    ++place.document;
  }
}

std::vector<Manifest> read_manifests(Invocation& line) {
  std::vector<Manifest> found;
  for (const std::string& name : line.all("filename")) {
    if (name == "-") {
      add_text(line, {std::istreambuf_iterator<char>(std::cin), {}}, "standard input", found);
      continue;
    }
    std::vector<fs::path> files;
    if (fs::is_directory(name)) {
      const auto consider = [&](const fs::directory_entry& entry) {
        if (entry.is_regular_file() && is_manifest(entry.path())) files.push_back(entry.path());
      };
      if (line.on("recursive"))
        for (const auto& entry : fs::recursive_directory_iterator(name)) consider(entry);
      else
        for (const auto& entry : fs::directory_iterator(name)) consider(entry);
      std::sort(files.begin(), files.end());
      if (files.empty())
        throw Error(Code::bad_request,
                    name + ": the folder has no .yaml, .yml or .json file" +
                        (line.on("recursive") ? "" : " (-R looks into folders below it)"));
    } else {
      files.push_back(name);
    }
    for (const fs::path& file : files)
      add_text(line, read_file(file, 16U << 20), file.string(), found);
  }
  if (found.empty())
    throw Error(Code::bad_request,
                line.given("filename") ? "no objects in what -f named" : "name manifests with -f");
  return found;
}

}  // namespace

std::vector<Manifest> manifests(Invocation& line, Names names) {
  std::vector<Manifest> found = read_manifests(line);
  for (const Manifest& m : found)
    if (m.name.empty() && names == Names::required)
      throw Error(Code::bad_request,
                  m.source +
                      ": metadata.name is missing; an object with generateName is made with "
                      "umpctl create -f, and has its name from then on");
  return found;
}

std::string failure_text(const Manifest& m, const Error& error) {
  std::vector<std::pair<int, std::string>> places;  // line and what is wrong there
  for (const Cause& cause : error.causes()) {
    if (cause.field.empty()) continue;
    const std::string path = m.place.prefix + cause.field;
    std::string message = cause.message;
    // Kubernetes' schema messages name the field a second time.
    if (const size_t again = message.find(cause.field + " in body "); again != std::string::npos)
      message.erase(again, cause.field.size() + 9);
    places.emplace_back(
        m.place.text ? apis::yaml_line_of(*m.place.text, m.place.document, path) : 0,
        cause.field + ": " + message);
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (const auto& [line, what] : places)
    text += "error: " + (line > 0 ? m.place.file + ":" + std::to_string(line) : m.source) + ": " +
            what + "\n";
  if (!text.empty()) return client::printable(text);
  return client::printable("error: " + m.source + ": " + object_name(*m.kind, m.name) + ": " +
                           error.message() + "\n");
}

bool is_dry_run(Invocation& line) {
  return line.get("dry-run") == "server" || line.get("dry-run") == "client";
}

client::Params write_params(Invocation& line, const std::string& manager) {
  client::Params params{
      {"fieldManager", line.given("field-manager") ? line.get("field-manager") : manager},
      {"fieldValidation", "Strict"}};
  if (line.given("validate")) {
    const std::string mode = line.get("validate");
    if (mode == "strict" || mode == "true")
      params.back().second = "Strict";
    else if (mode == "warn")
      params.back().second = "Warn";
    else if (mode == "ignore" || mode == "false")
      params.back().second = "Ignore";
    else
      throw Error(Code::bad_request,
                  "--validate is \"" + mode + "\", it must be strict, warn or ignore");
  }
  const std::string dry = line.get("dry-run");
  if (is_dry_run(line))
    params.emplace_back("dryRun", "All");
  else if (dry != "none" && !dry.empty())
    throw Error(Code::bad_request,
                "--dry-run is \"" + dry + "\", it must be none, client or server");
  return params;
}

}  // namespace umpteenth::umpctl
