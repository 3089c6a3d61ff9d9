// apply and diff: kubectl's three-way apply.
#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "apis/object.h"
#include "apis/yaml.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/subprocess.h"
#include "client/merge.h"
#include "cmd/umpctl/command.h"
#include "cmd/umpctl/output.h"
#include "cmd/umpctl/resources.h"

namespace umpteenth::umpctl {
namespace {

std::optional<json::Value> find_live(Invocation& line, const Manifest& m) {
  try {
    return line.client().get(*m.kind, m.ns, m.name);
  } catch (const Error& e) {
    if (e.code() == Code::not_found && e.message().find("not found") != std::string::npos)
      return std::nullopt;
    throw;
  }
}

// The manifest as apply sends it first: with itself in the annotation.
json::Value annotated(const Manifest& m) {
  json::Value object = m.object;
  const std::string text = client::last_applied_text(object);
  object["metadata"]["annotations"].set(apis::kLastApplied, text);
  return object;
}

json::Value patch_for(const Manifest& m, const json::Value& live) {
  const std::string before = apis::annotation_of(live, apis::kLastApplied);
  json::Value last = json::Value::object();
  if (!before.empty()) {
    try {
      last = json::parse(before);
    } catch (const Error&) {
      last = json::Value::object();  // not ours: nothing is known to have been applied
    }
  }
  json::Value wanted = annotated(m);
  wanted.erase("status");
  json::Value patch = client::three_way_patch(last, live, wanted);
  // Only the annotation's text differs: nothing that was declared changed.
  json::Value rest = patch;
  if (json::Value* metadata = rest.find("metadata")) {
    if (json::Value* annotations = metadata->find("annotations")) {
      annotations->erase(apis::kLastApplied);
      if (annotations->empty()) metadata->erase("annotations");
    }
    if (metadata->empty()) rest.erase("metadata");
  }
  if (rest.empty() && !before.empty()) return json::Value::object();
  return patch;
}

// What a person compares: no server-made metadata.
json::Value comparable(json::Value object) {
  object = without_managed_fields(std::move(object));
  object.erase("status");
  if (json::Value* metadata = object.find("metadata")) {
    for (const char* key : {"resourceVersion", "generation", "uid", "creationTimestamp"})
      metadata->erase(key);
    if (json::Value* annotations = metadata->find("annotations")) {
      annotations->erase(apis::kLastApplied);
      if (annotations->empty()) metadata->erase("annotations");
    }
  }
  return object;
}

struct Applied {
  json::Value object;
  std::string verb;
};

Applied apply_one(Invocation& line, const Manifest& m) {
  client::Params params =
      write_params(line, line.on("server-side") ? "umpctl" : "kubectl-client-side-apply");
  const bool client_only = line.get("dry-run") == "client";
  if (line.on("server-side")) {
    params.emplace_back("force", line.on("force-conflicts") ? "true" : "false");
    const std::string path = client::Client::path_of(*m.kind, m.ns, m.name);
    const client::Reply reply =
        line.client().send("PATCH", path, params, m.object.dump(), "application/apply-patch+yaml");
    return {json::parse(reply.body), "serverside-applied"};
  }
  const auto live = find_live(line, m);
  if (!live) {
    if (client_only) return {m.object, "created"};
    return {line.client().create(*m.kind, m.ns, annotated(m), params), "created"};
  }
  const json::Value patch = patch_for(m, *live);
  if (patch.empty()) return {*live, "unchanged"};
  if (client_only) return {*live, "configured"};
  json::Value now = line.client().patch(*m.kind, m.ns, m.name, patch, params);
  const bool same = line.get("dry-run") == "server"
                        ? comparable(now) == comparable(*live)
                        : apis::revision_of(now) == apis::revision_of(*live);
  return {std::move(now), same ? "unchanged" : "configured"};
}

std::string dry_suffix(Invocation& line) {
  if (line.get("dry-run") == "client") return " (dry run)";
  if (line.get("dry-run") == "server") return " (server dry run)";
  return "";
}

int apply(Invocation& line) {
  if (line.on("server-side") && line.get("dry-run") == "client")
    throw Error(Code::bad_request, "--dry-run=client and --server-side exclude each other");
  if (line.on("force-conflicts") && !line.on("server-side"))
    throw Error(Code::bad_request, "--force-conflicts works with --server-side only");
  const Output output = parse_output(line.get("output"));
  std::vector<Manifest> all = manifests(line);
  // Workspaces first: the others live in them.
  std::stable_sort(all.begin(), all.end(), [](const Manifest& a, const Manifest& b) {
    return !a.kind->namespaced() && b.kind->namespaced();
  });
  int rc = kOk;
  for (const Manifest& m : all) {
    try {
      const Applied done = apply_one(line, m);
      if (output.form == Output::Form::table)
        std::cout << object_name(*m.kind, m.name) << " " << done.verb << dry_suffix(line) << "\n";
      else
        print_object(std::cout, output, *m.kind, without_managed_fields(done.object));
    } catch (const Error& e) {
      std::cerr << failure_text(m, e);
      rc = kError;
    }
  }
  return rc;
}

// Values of secrets never show; that one changed does.
void mask(json::Value& before, json::Value& after) {
  for (const char* field : {"sealedData", "stringData"}) {
    json::Value* b = before["spec"].find(field);
    json::Value* a = after["spec"].find(field);
    if (b && b->is_object())
      for (json::Member& m : b->members()) {
        json::Value* other = a ? a->find(m.key) : nullptr;
        const bool changed = other && !(*other == m.value);
        m.value = changed ? "*** (before)" : "***";
        if (other) *other = changed ? "*** (after)" : "***";
      }
    if (a && a->is_object())
      for (json::Member& m : a->members())
        if (m.value.is_string() && !m.value.as_string().starts_with("***")) m.value = "***";
  }
}

int diff_one(Invocation& line, const Manifest& m) {
  const auto live = find_live(line, m);
  client::Params params = write_params(line, "kubectl-client-side-apply");
  params.emplace_back("dryRun", "All");
  json::Value after;
  if (!live) {
    after = line.client().create(*m.kind, m.ns, annotated(m), params);
  } else {
    const json::Value patch = patch_for(m, *live);
    after = patch.empty() ? *live : line.client().patch(*m.kind, m.ns, m.name, patch, params);
  }
  json::Value b = live ? comparable(*live) : json::Value(), a = comparable(after);
  if (live && m.kind->kind == "Secret") mask(b, a);
  if (!live && m.kind->kind == "Secret") {
    json::Value none = json::Value::object();
    mask(none, a);
  }
  if (live && a == b) return 0;
  TempDir folder;
  const std::string name = m.kind->plural + "." + (m.ns.empty() ? "" : m.ns + ".") + m.name;
  const auto before_file = folder.path() / "LIVE" / name,
             after_file = folder.path() / "MERGED" / name;
  std::filesystem::create_directories(before_file.parent_path());
  std::filesystem::create_directories(after_file.parent_path());
  write_file_durably(before_file, live ? apis::to_yaml(b) : "", 0600);
  write_file_durably(after_file, apis::to_yaml(a), 0600);
  ::umpteenth::Command process;
  const char* external = std::getenv("KUBECTL_EXTERNAL_DIFF");
  process.argv = {external && *external ? external : "diff"};
  if (!external || !*external) process.argv.insert(process.argv.end(), {"-u", "-N"});
  process.argv.insert(process.argv.end(), {before_file.string(), after_file.string()});
  process.max_output = 16U << 20;
  const CommandResult result = system_runner().run(process);
  if (result.exit_code > 1) throw Error(Code::internal, process.argv[0] + " failed: " + result.err);
  std::cout << result.out;
  return result.exit_code;
}

int diff(Invocation& line) {
  int rc = 0;
  for (const Manifest& m : manifests(line)) {
    try {
      rc = std::max(rc, diff_one(line, m));
    } catch (const Error& e) {
      std::cerr << failure_text(m, e);
      rc = kUsage;
    }
  }
  return rc;
}

}  // namespace

void add_apply_commands(std::vector<Command>& table) {
  const Flag validate{"validate", 0,       "MODE", "strict, warn or ignore unknown fields",
                      "strict",   "strict"};
  const Flag manager{"field-manager", 0, "NAME", "the name that the written fields get"};
  table.push_back({"apply",
                   "-f FILE…",
                   "Declare objects from manifests",
                   "umpctl apply -f job.yaml\numpctl apply -R -f manifests/\ncat job.yaml | umpctl "
                   "apply -f -\n\nFields that an earlier apply set and the manifest lacks are "
                   "removed; what others set stays.",
                   {kFileFlag,
                    kRecursiveFlag,
                    kDryRunFlag,
                    validate,
                    manager,
                    {"server-side", 0, "", "let the server merge (server-side apply)"},
                    {"force-conflicts", 0, "", "with --server-side: take over fields of others"},
                    kOutputFlag},
                   apply});
  table.push_back(
      {"diff",
       "-f FILE…",
       "Show what apply would change",
       "Exit code: 0 no differences, 1 differences, more than 1 an error. The values of "
       "secrets are shown as ***.\n$KUBECTL_EXTERNAL_DIFF replaces diff -u -N.",
       {kFileFlag, kRecursiveFlag, validate, manager},
       diff});
}

}  // namespace umpteenth::umpctl
