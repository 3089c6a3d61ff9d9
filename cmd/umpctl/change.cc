// create, replace, patch, label, annotate, suspend, resume, delete, wait.
#include <algorithm>
#include <iostream>
#include <thread>

#include "apis/object.h"
#include "apis/run.h"
#include "apis/yaml.h"
#include "base/error.h"
#include "client/jsonpath.h"
#include "cmd/umpctl/command.h"
#include "cmd/umpctl/output.h"
#include "cmd/umpctl/resources.h"

namespace umpteenth::umpctl {
namespace {

using Clock = std::chrono::steady_clock;

int create(Invocation& line) {
  const Output output = parse_output(line.get("output"));
  int rc = kOk;
  for (const Manifest& m : manifests(line, Names::may_be_generated)) {
    try {
      const bool client_only = line.get("dry-run") == "client";
      const json::Value made =
          client_only
              ? m.object
              : line.client().create(*m.kind, m.ns, m.object, write_params(line, "umpctl-create"));
      if (output.form == Output::Form::table)
        std::cout << object_name(*m.kind, apis::name_of(made)) << " created"
                  << (client_only                       ? " (dry run)"
                      : line.get("dry-run") == "server" ? " (server dry run)"
                                                        : "")
                  << "\n";
      else
        print_object(std::cout, output, *m.kind, without_managed_fields(made));
    } catch (const Error& e) {
      std::cerr << failure_text(m, e);
      rc = kError;
    }
  }
  return rc;
}

int replace(Invocation& line) {
  int rc = kOk;
  for (Manifest& m : manifests(line)) {
    try {
      if (apis::revision_of(m.object) == 0)
        m.object["metadata"].set(
            "resourceVersion",
            std::to_string(apis::revision_of(line.client().get(*m.kind, m.ns, m.name))));
      line.client().send("PUT", client::Client::path_of(*m.kind, m.ns, m.name),
                         write_params(line, "umpctl-replace"), m.object.dump());
      std::cout << object_name(*m.kind, m.name) << " replaced"
                << (is_dry_run(line) ? " (server dry run)" : "") << "\n";
    } catch (const Error& e) {
      std::cerr << failure_text(m, e);
      rc = kError;
    }
  }
  return rc;
}

void merge(Invocation& line, const Target& t, const json::Value& patch, const std::string& done) {
  const uint64_t before = apis::revision_of(line.client().get(*t.kind, t.ns, t.name));
  client::Params params = write_params(line, "umpctl");
  const json::Value now = line.client().patch(*t.kind, t.ns, t.name, patch, params);
  std::cout << object_name(*t.kind, t.name) << " " << done
            << (is_dry_run(line)                   ? " (server dry run)"
                : apis::revision_of(now) == before ? " (no change)"
                                                   : "")
            << "\n";
}

int patch(Invocation& line) {
  const Target t = one_target(line);
  const std::string type = line.get("type");
  if (type != "merge" && type != "json")
    throw Error(Code::bad_request, "--type is \"" + type + "\", it must be merge or json");
  if (!line.given("patch")) throw Error(Code::bad_request, "-p PATCH is missing");
  const json::Value body = apis::parse_yaml_one(line.get("patch"));
  if (type == "merge") {
    merge(line, t, body, "patched");
    return kOk;
  }
  line.client().send("PATCH", client::Client::path_of(*t.kind, t.ns, t.name),
                     write_params(line, "umpctl"), body.dump(), "application/json-patch+json");
  std::cout << object_name(*t.kind, t.name) << " patched"
            << (is_dry_run(line) ? " (server dry run)" : "") << "\n";
  return kOk;
}

// label and annotate: k=v sets, k- removes.
int set_pairs(Invocation& line, const char* field, const char* done, const char* undone) {
  std::vector<std::string> pairs, names;
  for (const std::string& word : line.arguments)
    (word.find('=') != std::string::npos || word.ends_with("-") ? pairs : names).push_back(word);
  if (pairs.empty()) throw Error(Code::bad_request, "name at least one KEY=VALUE or KEY-");
  const bool only_removed = std::all_of(pairs.begin(), pairs.end(), [](const std::string& p) {
    return p.find('=') == std::string::npos;
  });
  line.arguments = names;
  for (const Target& t : targets(line)) {
    if (t.name.empty()) throw Error(Code::bad_request, "name the objects");
    const json::Value live = line.client().get(*t.kind, t.ns, t.name);
    json::Value wanted = json::Value::object();
    for (const std::string& pair : pairs) {
      const size_t equals = pair.find('=');
      if (equals == std::string::npos) {
        wanted.set(pair.substr(0, pair.size() - 1), nullptr);
        continue;
      }
      const std::string key = pair.substr(0, equals), value = pair.substr(equals + 1);
      const json::Value* old = live.at_path({"metadata", field}).find(key);
      if (old && old->is_string() && old->as_string() != value && !line.on("overwrite"))
        throw Error(Code::bad_request, object_name(*t.kind, t.name) + " has " + key + "=" +
                                           old->as_string() + " already; --overwrite changes it");
      wanted.set(key, value);
    }
    merge(line, t, json::Value::object({{"metadata", json::Value::object({{field, wanted}})}}),
          only_removed ? undone : done);
  }
  return kOk;
}

int set_suspended(Invocation& line, bool suspend) {
  for (const Target& t : targets(line)) {
    if (t.name.empty()) throw Error(Code::bad_request, "name the objects");
    merge(line, t, json::Value::object({{"spec", json::Value::object({{"suspend", suspend}})}}),
          suspend ? "suspended" : "resumed");
  }
  return kOk;
}

std::vector<Target> named_or_selected(Invocation& line) {
  std::vector<Target> found;
  if (line.given("filename")) {
    for (const Manifest& m : manifests(line)) found.push_back({m.kind, m.ns, m.name});
    return found;
  }
  for (const Target& t : targets(line)) {
    if (!t.name.empty()) {
      found.push_back(t);
      continue;
    }
    if (!line.given("selector") && !line.on("all"))
      throw Error(Code::bad_request, "name the objects, or say -l LABELS or --all");
    client::Params params;
    if (line.given("selector")) params.emplace_back("labelSelector", line.get("selector"));
    const json::Value list =
        json::parse(line.client().send("GET", client::Client::path_of(*t.kind, t.ns), params).body);
    for (const json::Value& item : list.get("items").items())
      found.push_back({t.kind, apis::namespace_of(item), apis::name_of(item)});
  }
  return found;
}

bool gone(Invocation& line, const Target& t, const std::string& uid) {
  try {
    return apis::uid_of(line.client().get(*t.kind, t.ns, t.name)) != uid;
  } catch (const Error& e) {
    if (e.code() == Code::not_found) return true;
    throw;
  }
}

// A job goes with the last of its runs, which may take hours: named, each with what ends it.
void say_what_holds(Invocation& line, const Target& t) {
  if (t.kind->kind != "Job") return;
  const json::Value list =
      json::parse(line.client()
                      .send("GET", client::Client::path_of(apis::run_kind(), t.ns),
                            {{"fieldSelector", "spec.job=" + t.name}})
                      .body);
  for (const json::Value& run : list.get("items").items()) {
    if (apis::terminal(apis::phase_from(run.get("status").get_string("phase")))) continue;
    const std::string name = "run/" + apis::name_of(run);
    std::cerr << "waiting for " << name << " to end (umpctl cancel " << name << " ends it)\n";
  }
}

int remove(Invocation& line) {
  const std::string cascade = line.get("cascade");
  std::string policy;
  if (cascade == "background" || cascade == "true")
    policy = "Background";
  else if (cascade == "foreground")
    policy = "Foreground";
  else if (cascade == "orphan" || cascade == "false")
    policy = "Orphan";
  else
    throw Error(Code::bad_request,
                "--cascade is \"" + cascade + "\", it must be background, foreground or orphan");
  json::Value options = json::Value::object({{"propagationPolicy", policy}});
  const std::string dry = line.get("dry-run");
  if (dry == "server") options.set("dryRun", json::Value::array({"All"}));
  int rc = kOk;
  std::vector<std::pair<Target, std::string>> waiting;
  for (const Target& t : named_or_selected(line)) {
    try {
      if (dry != "client") {
        client::Params params;
        if (line.given("cascade")) params.emplace_back("cascade", cascade);
        const json::Value answer =
            json::parse(line.client()
                            .send("DELETE", client::Client::path_of(*t.kind, t.ns, t.name), params,
                                  options.dump())
                            .body);
        if (answer.get_string("kind") != "Status" && dry == "none")
          waiting.emplace_back(t, apis::uid_of(answer));
      }
      std::cout << object_name(*t.kind, t.name) << " deleted"
                << (dry == "client"   ? " (dry run)"
                    : dry == "server" ? " (server dry run)"
                                      : "")
                << "\n";
    } catch (const Error& e) {
      if (e.code() == Code::not_found && line.on("ignore-not-found")) continue;
      std::cerr << "error: " << e.message() << "\n";
      rc = kError;
    }
  }
  if (!line.on("wait")) return rc;
  const int64_t timeout = line.milliseconds("timeout");
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout);
  for (const auto& [t, uid] : waiting) {
    const auto patient_until = Clock::now() + std::chrono::seconds(1);
    for (bool said = false; !gone(line, t, uid);) {
      if (!said && Clock::now() > patient_until) {
        std::cout.flush();
        say_what_holds(line, t);
        said = true;
      }
      if (timeout > 0 && Clock::now() > deadline) {
        const json::Value left = line.client().get(*t.kind, t.ns, t.name);
        std::cerr << "error: timed out waiting for " << object_name(*t.kind, t.name)
                  << " to go; it waits for " << left.at_path({"metadata", "finalizers"}).dump()
                  << "\n";
        return kError;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  return rc;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Whether the object fulfils one --for; stale conditions do not.
bool fulfilled(const json::Value& object, const std::string& what) {
  if (what.starts_with("condition=")) {
    std::string type = what.substr(10), wanted = "true";
    if (const size_t equals = type.find('='); equals != std::string::npos) {
      wanted = lower(type.substr(equals + 1));
      type = type.substr(0, equals);
    }
    const json::Value& conditions = object.at_path({"status", "conditions"});
    if (!conditions.is_array()) return false;
    for (const json::Value& c : conditions.items()) {
      if (lower(c.get_string("type")) != lower(type)) continue;
      const json::Value* seen = c.find("observedGeneration");
      if (seen && seen->is_int() && seen->as_int() < apis::generation_of(object)) return false;
      return lower(c.get_string("status")) == wanted;
    }
    return false;
  }
  const std::string rest = what.substr(9);  // jsonpath=
  const size_t close = rest.find('}');
  if (close == std::string::npos) throw Error(Code::bad_request, "--for=jsonpath={.path}[=VALUE]");
  const std::string value = client::jsonpath(rest.substr(0, close + 1), object);
  return close + 1 < rest.size() ? rest.substr(close + 2) == value : !value.empty();
}

int wait(Invocation& line) {
  if (!line.given("for"))
    throw Error(
        Code::bad_request,
        "--for is missing: create, delete, condition=NAME[=VALUE] or jsonpath={.path}[=VALUE]");
  std::vector<std::string> conditions = line.all("for");
  for (const std::string& c : conditions)
    if (c != "create" && c != "delete" && !c.starts_with("condition=") &&
        !c.starts_with("jsonpath="))
      throw Error(
          Code::bad_request,
          "--for is \"" + c +
              "\", it must be create, delete, condition=NAME[=VALUE] or jsonpath={.path}[=VALUE]");
  const bool until_created =
      std::find(conditions.begin(), conditions.end(), "create") != conditions.end();
  const std::vector<Target> wanted = named_or_selected(line);
  if (wanted.empty()) throw Error(Code::not_found, "no matching resources found");
  int64_t timeout = line.milliseconds("timeout");
  if (timeout < 0) timeout = 7LL * 24 * 3'600'000;
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout);
  for (const Target& t : wanted)
    for (const std::string& c : conditions)
      for (;;) {
        bool met = false;
        try {
          const json::Value object = line.client().get(*t.kind, t.ns, t.name);
          met = c == "create" || (c != "delete" && fulfilled(object, c));
        } catch (const Error& e) {
          if (e.code() != Code::not_found) throw;
          met = c == "delete";
          if (!met && !until_created) throw;
        }
        if (met) {
          std::cout << object_name(*t.kind, t.name) << " condition met\n";
          break;
        }
        if (Clock::now() >= deadline)
          throw Error(Code::timeout,
                      "timed out waiting for " + c + " on " + object_name(*t.kind, t.name));
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
  return kOk;
}

}  // namespace

void add_change_commands(std::vector<Command>& table) {
  const Flag overwrite{"overwrite", 0, "", "change values that are set already"};
  const Flag validate{"validate", 0,       "MODE", "strict, warn or ignore unknown fields",
                      "strict",   "strict"};
  const Flag all{"all", 0, "", "all of the kind in the workspace"};
  table.push_back({"create",
                   "-f FILE…",
                   "Create objects that do not exist yet",
                   "",
                   {kFileFlag, kRecursiveFlag, kDryRunFlag, validate, kOutputFlag},
                   create});
  table.push_back({"replace",
                   "-f FILE…",
                   "Replace objects by what the files say",
                   "",
                   {kFileFlag, kRecursiveFlag, kDryRunFlag, validate},
                   replace});
  table.push_back({"patch",
                   "TYPE NAME -p PATCH",
                   "Change fields of an object",
                   "umpctl patch job hello -p '{\"spec\":{\"suspend\":true}}'",
                   {{"patch", 'p', "PATCH", "JSON or YAML"},
                    {"type", 0, "TYPE", "merge or json", "merge"},
                    kDryRunFlag},
                   patch});
  table.push_back(
      {"label",
       "TYPE NAME KEY=VALUE… KEY-…",
       "Set or remove labels",
       "",
       {overwrite, kDryRunFlag},
       [](Invocation& line) { return set_pairs(line, "labels", "labeled", "unlabeled"); }});
  table.push_back(
      {"annotate",
       "TYPE NAME KEY=VALUE… KEY-…",
       "Set or remove annotations",
       "",
       {overwrite, kDryRunFlag},
       [](Invocation& line) { return set_pairs(line, "annotations", "annotated", "annotated"); }});
  table.push_back({"suspend",
                   "TYPE NAME…",
                   "Let schedule and webhook of a job start nothing",
                   "",
                   {},
                   [](Invocation& line) { return set_suspended(line, true); }});
  table.push_back({"resume", "TYPE NAME…", "End a suspension", "", {}, [](Invocation& line) {
                     return set_suspended(line, false);
                   }});
  table.push_back(
      {"delete",
       "TYPE NAME… | -f FILE… | TYPE -l LABELS",
       "Delete objects",
       "Waits until finalizers are done; --wait=false does not.\nA job goes when its last run "
       "has ended: queued runs are cancelled, those at work are named and\nwaited for.",
       {kFileFlag,
        kRecursiveFlag,
        kSelectorFlag,
        all,
        {"cascade", 0, "HOW",
         "background, foreground or orphan; for a workspace: also what is in it", "background",
         "background"},
        {"wait", 0, "", "wait until they are gone", "true"},
        {"timeout", 0, "DURATION", "how long to wait, 0 = for ever", "0"},
        {"ignore-not-found", 0, "", "not there is no error"},
        kDryRunFlag},
       remove});
  table.push_back(
      {"wait",
       "TYPE NAME --for=…",
       "Wait until objects are as said",
       "umpctl wait run/hello-abc --for=jsonpath={.status.phase}=Succeeded --timeout=2m\n"
       "umpctl wait job hello --for=condition=Ready",
       {{"for", 0, "WHAT", "create, delete, condition=NAME[=VALUE] or jsonpath={.path}[=VALUE]"},
        {"timeout", 0, "DURATION", "how long", "30s"},
        kFileFlag,
        kSelectorFlag,
        all},
       wait});
}

}  // namespace umpteenth::umpctl
