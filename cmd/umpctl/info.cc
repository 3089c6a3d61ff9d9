// version, api-resources, events, auth, completion, docs.
#include <algorithm>
#include <iostream>
#include <iterator>

#include "apis/kind.h"
#include "apis/object.h"
#include "apis/serve.h"
#include "base/error.h"
#include "client/printable.h"
#include "cmd/umpctl/command.h"
#include "cmd/umpctl/output.h"
#include "cmd/umpctl/resources.h"

namespace umpteenth::umpctl {
namespace {

int version(Invocation& line) {
  std::cout << "umpctl " UMPTEENTH_VERSION "\n";
  if (line.on("client")) return kOk;
  const json::Value server = json::parse(line.client().send("GET", "/version").body);
  std::cout << "umpd   " << server.get_string("gitVersion") << "\n";
  return kOk;
}

int api_resources(Invocation&) {
  json::Value table = json::Value::object();
  for (const char* column : {"Name", "ShortNames", "APIVersion", "Namespaced", "Kind"})
    table["columnDefinitions"].push_back(json::Value::object({{"name", column}, {"priority", 0}}));
  const auto add = [&](const apis::Kind& k, const std::string& version) {
    std::string names;
    for (const std::string& n : k.short_names) names += (names.empty() ? "" : ",") + n;
    table["rows"].push_back(json::Value::object(
        {{"cells", json::Value::array(
                       {k.plural, names, version, k.namespaced() ? "true" : "false", k.kind})}}));
  };
  add(apis::event_kind(), "v1");
  add(apis::namespace_kind(), "v1");
  for (const apis::Kind* k : apis::kinds()) add(*k, apis::kGroupVersion);
  TablePrinter({}).print(std::cout, table);
  return kOk;
}

int events(Invocation& line) {
  client::Params params{{"includeObject", "Object"}};
  if (line.given("for")) {
    const std::string word = line.get("for");
    const size_t slash = word.find('/');
    if (slash == std::string::npos)
      throw Error(Code::bad_request, "--for is \"" + word + "\", it must be TYPE/NAME");
    params.emplace_back("fieldSelector",
                        "involvedObject.kind=" + kind_of_word(word.substr(0, slash)).kind +
                            ",involvedObject.name=" + word.substr(slash + 1));
  }
  const std::string ns = line.on("all-namespaces") ? "" : line.ns();
  json::Value table =
      json::parse(line.client()
                      .send("GET", client::Client::path_of(apis::event_kind(), ns), params, "", "",
                            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
                      .body);
  sort_events(table);
  TablePrinter::Options options;
  options.show_namespace = line.on("all-namespaces");
  if (table.get("rows").size() == 0)
    std::cerr << "No events found\n";
  else
    TablePrinter(options).print(std::cout, table);
  return kOk;
}

constexpr std::string_view kVerbs[] = {"get",    "list",  "watch",  "create",
                                       "update", "patch", "delete", "deletecollection"};

int can_i(Invocation& line) {
  if (line.arguments.size() < 2)
    throw Error(Code::bad_request,
                "name a verb and a type: umpctl auth can-i VERB TYPE[/NAME], such as get jobs");
  std::string type = line.arguments[1], name = line.arguments.size() > 2 ? line.arguments[2] : "";
  if (const size_t slash = type.find('/'); slash != std::string::npos) {
    name = type.substr(slash + 1);
    type = type.substr(0, slash);
  }
  const apis::Kind& kind = kind_of_word(type);
  const std::string& verb = line.arguments[0];
  if (verb != "*" && std::find(std::begin(kVerbs), std::end(kVerbs), verb) == std::end(kVerbs))
    std::cerr << "Warning: verb '" << client::printable_line(verb) << "' is not a known verb\n";
  json::Value attributes = json::Value::object({{"verb", verb},
                                                {"group", apis::kGroup},
                                                {"resource", kind.plural},
                                                {"namespace", kind.namespaced() ? line.ns() : ""}});
  if (!name.empty()) attributes.set("name", name);
  const json::Value review = json::parse(
      line.client()
          .send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {},
                json::Value::object(
                    {{"apiVersion", "authorization.k8s.io/v1"},
                     {"kind", "SelfSubjectAccessReview"},
                     {"spec", json::Value::object({{"resourceAttributes", attributes}})}})
                    .dump())
          .body);
  const json::Value& status = review.get("status");
  if (status.get_bool("allowed")) {
    std::cout << "yes\n";
    return kOk;
  }
  const std::string reason = status.get_string("reason");
  std::cout << "no" << (reason.empty() ? "" : " - " + reason) << "\n";
  return kError;
}

int whoami(Invocation& line) {
  const json::Value review = json::parse(
      line.client()
          .send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {},
                R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})")
          .body);
  const json::Value& user = review.at_path({"status", "userInfo"});
  std::cout << "Username  " << user.get_string("username") << "\n";
  std::string groups;
  if (user.get("groups").is_array())
    for (const json::Value& g : user.get("groups").items())
      groups += (groups.empty() ? "" : ", ") + g.as_string();
  std::cout << "Groups    " << groups << "\n";
  return kOk;
}

// Every command and flag, from the table; names of objects are asked from the server.
int completion(Invocation& line) {
  if (line.arguments.size() != 1 || (line.arguments[0] != "bash" && line.arguments[0] != "zsh"))
    throw Error(Code::bad_request,
                "name the shell: umpctl completion bash or umpctl completion zsh; bash takes it by "
                "source <(umpctl completion bash)");
  std::string names, kinds;
  for (const Command& c : commands())
    if (c.name.find(' ') == std::string::npos) names += c.name + " ";
  for (const apis::Kind* k : apis::kinds()) kinds += k->plural + " ";
  if (line.arguments[0] == "zsh") std::cout << "autoload -U +X bashcompinit && bashcompinit\n";
  std::cout
      << "_umpctl() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      << "  if [ \"$COMP_CWORD\" = 1 ]; then COMPREPLY=($(compgen -W \"" << names
      << "auth\" -- \"$cur\")); return; fi\n"
      << "  case ${COMP_WORDS[1]} in\n";
  for (const Command& c : commands()) {
    if (c.name.find(' ') != std::string::npos) continue;
    std::cout << "    " << c.name << ") flags=\"";
    for (const auto* flags : {&c.flags, &global_flags()})
      for (const Flag& f : *flags) std::cout << "--" << f.name << " ";
    std::cout << "\" ;;\n";
  }
  std::cout
      << "    *) flags= ;;\n  esac\n"
      << "  case $cur in\n    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\")); return ;;\n"
      << "    */*) COMPREPLY=($(compgen -W \"$(umpctl get \"${cur%%/*}\" --no-headers -o "
         "custom-columns=N:.metadata.name 2>/dev/null | sed \"s|^|${cur%%/*}/|\")\" -- "
         "\"$cur\")); return ;;\n  esac\n"
      << "  case ${COMP_WORDS[1]} in\n    run) COMPREPLY=($(compgen -W \"$(umpctl get jobs -o name "
         "2>/dev/null | sed 's|.*/||')\" -- \"$cur\")) ;;\n"
      << "    get|describe|delete|wait|history|rollback|patch|label|annotate|suspend|resume)\n"
      << "      if [ \"$COMP_CWORD\" = 2 ]; then COMPREPLY=($(compgen -W \"" << kinds
      << "\" -- \"$cur\"))\n"
      << "      else COMPREPLY=($(compgen -W \"$(umpctl get \"${COMP_WORDS[2]}\" -o name "
         "2>/dev/null | sed 's|.*/||')\" -- \"$cur\")); fi ;;\n"
      << "    cancel|logs|timeline|artifacts|retry) COMPREPLY=($(compgen -W \"$(umpctl get runs -o "
         "name 2>/dev/null | sed 's|^run[^/]*|run|')\" -- \"$cur\")) ;;\n"
      << "  esac\n}\ncomplete -o default -F _umpctl umpctl\n";
  return kOk;
}

int docs(Invocation&) {
  std::cout << commands_markdown();
  return kOk;
}

}  // namespace

void add_info_commands(std::vector<Command>& table) {
  table.push_back({"version",
                   "",
                   "Show the versions of umpctl and umpd",
                   "",
                   {{"client", 0, "", "umpctl's only"}},
                   version});
  table.push_back({"api-resources", "", "List the kinds there are", "", {}, api_resources});
  table.push_back({"events",
                   "",
                   "List what happened lately",
                   "",
                   {{"for", 0, "TYPE/NAME", "to that object only"}, kAllNamespacesFlag},
                   events});
  table.push_back({"auth can-i",
                   "VERB TYPE[/NAME]",
                   "Ask whether you may",
                   "Exit code: 0 yes, 1 no.",
                   {},
                   can_i});
  table.push_back({"auth whoami", "", "Show who the server takes you for", "", {}, whoami});
  table.push_back({"completion",
                   "bash|zsh",
                   "Print the shell's completion",
                   "source <(umpctl completion bash)",
                   {},
                   completion});
  table.push_back({"docs", "", "Print docs/umpctl.md", "", {}, docs});
}

}  // namespace umpteenth::umpctl
