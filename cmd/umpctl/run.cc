// run, cancel, retry, timeline, logs, artifacts: a run from its start to what it left.
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

#include "apis/job.h"
#include "apis/object.h"
#include "apis/run.h"
#include "apis/yaml.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/http/message.h"
#include "client/printable.h"
#include "client/timeline_text.h"
#include "cmd/umpctl/command.h"
#include "cmd/umpctl/interrupt.h"
#include "cmd/umpctl/output.h"
#include "cmd/umpctl/persist.h"
#include "cmd/umpctl/resources.h"

namespace umpteenth::umpctl {
namespace {

std::string job_name(const std::string& word) {
  const size_t slash = word.find('/');
  if (slash == std::string::npos) return word;
  if (kind_of_word(word.substr(0, slash)).kind != "Job")
    throw Error(Code::bad_request, "\"" + word + "\" is no job");
  return word.substr(slash + 1);
}

bool exists(Invocation& line, const apis::Kind& kind, const std::string& name) {
  try {
    line.client().get(kind, line.ns(), name);
    return true;
  } catch (const Error& e) {
    if (e.code() == Code::not_found) return false;
    throw;
  }
}

// run/NAME or NAME; job/NAME means its newest run.
std::string run_name(Invocation& line, const std::string& word) {
  const size_t slash = word.find('/');
  if (slash == std::string::npos) {
    const bool job = !exists(line, apis::run_kind(), word) && exists(line, apis::job_kind(), word);
    if (!job) return word;
    throw Error(Code::not_found, "there is no run \"" + word +
                                     "\" but a job of that name: say job/" + word +
                                     " for its newest run");
  }
  const apis::Kind& kind = kind_of_word(word.substr(0, slash));
  const std::string name = word.substr(slash + 1);
  if (kind.kind == "Run") return name;
  if (kind.kind != "Job") throw Error(Code::bad_request, "\"" + word + "\" is neither run nor job");
  const json::Value list =
      json::parse(line.client()
                      .send("GET", client::Client::path_of(apis::run_kind(), line.ns()),
                            {{"labelSelector", std::string(apis::kJobLabel) + "=" + name}})
                      .body);
  const json::Value* newest = nullptr;
  for (const json::Value& run : list.get("items").items())
    if (!newest || apis::created_at(run) > apis::created_at(*newest) ||
        (apis::created_at(run) == apis::created_at(*newest) &&
         apis::name_of(run) > apis::name_of(*newest)))
      newest = &run;
  if (!newest) throw Error(Code::not_found, "job " + name + " has no runs");
  return apis::name_of(*newest);
}

std::string only_argument(Invocation& line, const char* what) {
  if (line.arguments.size() != 1)
    throw Error(Code::bad_request,
                std::string("name one ") + what + "; " +
                    (line.arguments.empty() ? std::string("none is")
                                            : std::to_string(line.arguments.size()) + " are") +
                    " named");
  return line.arguments[0];
}

apis::Phase phase_of(const json::Value& run) {
  return apis::phase_from(run.at_path({"status", "phase"}).is_string()
                              ? run.at_path({"status", "phase"}).as_string()
                              : "");
}

json::Value run_of(Invocation& line, const std::string& name) {
  return persistently([&] { return line.client().get(apis::run_kind(), line.ns(), name); });
}

std::string goes_on(const std::string& name) {
  return "the run goes on; umpctl cancel run/" + name + " ends it";
}

// Shows the timeline until the run has ended; the run as it ended.
json::Value follow(Invocation& line, const std::string& name, bool as_json) {
  std::optional<OnInterrupt> on_interrupt;
  int64_t after = 0;
  const std::string path = client::Client::path_of(apis::run_kind(), line.ns(), name, "timeline");
  for (;;) {
    const json::Value run = run_of(line, name);
    const bool ended = apis::terminal(phase_of(run));
    if (ended)
      on_interrupt.reset();
    else if (!on_interrupt)
      on_interrupt.emplace(goes_on(name));
    persistently([&] {  // a connection that broke goes on where it stopped
      client::Params params{{"after", std::to_string(after)}};
      if (!ended) params.emplace_back("watch", "1");
      line.client().stream(path, params, "application/json", [&](std::string_view text) {
        if (text.empty()) return true;
        const json::Value event = json::parse(text);
        after = std::max(after, event.get_int("seq", after));
        if (as_json)
          std::cout << text << "\n";
        else if (const std::string shown = client::timeline_line(event); !shown.empty())
          std::cout << shown << "\n";
        std::cout.flush();
        return true;
      });
    });
    if (ended) return run;
  }
}

int ended_as(const json::Value& run) {
  const json::Value& status = run.get("status");
  const apis::Phase phase = phase_of(run);
  const std::string name(apis::to_string(phase)), message = status.get_string("message");
  std::cerr << "run/" << apis::name_of(run) << " ";
  if (message == name || message.starts_with(name + " "))  // Skipped because …
    std::cerr << client::printable_line(message);
  else
    std::cerr << name << (message.empty() ? "" : ": ") << client::printable_line(message);
  std::cerr << "\n";
  return phase == apis::Phase::succeeded ? kOk : kError;
}

int run(Invocation& line) {
  const std::string job = job_name(only_argument(line, "job: umpctl run JOB"));
  json::Value body = json::Value::object();
  if (line.given("input") && line.given("input-file"))
    throw Error(Code::bad_request, "--input and --input-file exclude each other");
  if (line.given("input")) {
    try {
      body.set("input", json::parse(line.get("input")));
    } catch (Error& e) {
      throw e.in("--input");
    }
  }
  if (line.given("input-file")) {
    const std::string text = read_file(line.get("input-file"), 1U << 20);
    try {
      body.set("input", json::parse(text));
    } catch (const Error&) {
      body.set("input", text);  // as a webhook does it: other text is a JSON string
    }
  }
  if (line.given("instructions")) body.set("instructions", line.get("instructions"));
  const std::string path = "/apis/" + std::string(apis::kGroupVersion) + "/namespaces/" +
                           line.ns() + "/jobs/" + job + "/run";
  const client::Params strict{{"fieldValidation", "Strict"}};  // undeclared inputs are refused
  const json::Value made = json::parse(line.client().send("POST", path, strict, body.dump()).body);
  const std::string name = apis::name_of(made);
  const Output output = parse_output(line.get("output"));
  if (!line.on("follow") && !line.on("wait")) {
    if (output.form == Output::Form::table)
      std::cout << "run.umpteenth.dev/" << name << " created\n";
    else
      print_object(std::cout, output, apis::run_kind(), made);
    return kOk;
  }
  std::cerr << "run.umpteenth.dev/" << name << " created\n";
  json::Value ended;
  if (line.on("follow")) {
    ended = follow(line, name, false);
  } else {
    const OnInterrupt on_interrupt(goes_on(name));
    for (;;) {
      ended = run_of(line, name);
      if (apis::terminal(phase_of(ended))) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
  if (output.form != Output::Form::table) print_object(std::cout, output, apis::run_kind(), ended);
  return ended_as(ended);
}

// False where the run has ended already, which only the server can know for sure: it refuses then,
// and where the run was cancelled before it changes nothing.
bool request_cancel(Invocation& line, const std::string& name) {
  apis::Phase phase;
  try {
    phase = phase_of(line.client().patch(
        apis::run_kind(), line.ns(), name,
        json::Value::object({{"spec", json::Value::object({{"cancelRequested", true}})}}),
        {{"fieldManager", "umpctl"}}));
    if (!apis::terminal(phase)) return true;
  } catch (const Error& e) {
    if (e.code() != Code::invalid) throw;
    phase = phase_of(line.client().get(apis::run_kind(), line.ns(), name));
    if (!apis::terminal(phase)) throw;
  }
  std::cerr << "run/" << name << " has already ended: " << apis::to_string(phase) << "\n";
  return false;
}

int cancel(Invocation& line) {
  if (line.arguments.empty()) throw Error(Code::bad_request, "name a run: umpctl cancel run/NAME");
  int rc = kOk;
  for (const std::string& word : line.arguments) {
    const std::string name = run_name(line, word);
    if (request_cancel(line, name))
      std::cout << "run.umpteenth.dev/" << name << " cancel requested\n";
    else
      rc = kError;
  }
  return rc;
}

int retry(Invocation& line) {
  const std::string name = run_name(line, only_argument(line, "run: umpctl retry run/NAME"));
  const json::Value before = line.client().get(apis::run_kind(), line.ns(), name);
  const json::Value& old = before.get("spec");
  json::Value body = json::Value::object({{"trigger", "Retry"}});
  if (const json::Value* input = old.find("input")) body.set("input", *input);
  if (const json::Value* text = old.find("instructions")) body.set("instructions", *text);
  const std::string path = "/apis/" + std::string(apis::kGroupVersion) + "/namespaces/" +
                           line.ns() + "/jobs/" + old.get_string("job") + "/run";
  const json::Value made = json::parse(line.client().send("POST", path, {}, body.dump()).body);
  std::cout << "run.umpteenth.dev/" << apis::name_of(made) << " created\n";
  return line.on("follow") ? ended_as(follow(line, apis::name_of(made), false)) : kOk;
}

int timeline(Invocation& line) {
  const std::string name = run_name(line, only_argument(line, "run: umpctl timeline run/NAME"));
  const bool as_json = line.get("output") == "json";
  if (line.on("follow")) {
    follow(line, name, as_json);
    return kOk;
  }
  line.client().stream(
      client::Client::path_of(apis::run_kind(), line.ns(), name, "timeline"), {},
      "application/json", [&](std::string_view text) {
        if (!text.empty())
          std::cout << (as_json ? std::string(text) : client::timeline_line(json::parse(text)))
                    << "\n";
        return true;
      });
  return kOk;
}

int logs(Invocation& line) {
  const std::string name = run_name(line, only_argument(line, "run: umpctl logs run/NAME"));
  client::Params params;
  if (line.on("follow")) params.emplace_back("follow", "true");
  line.client().stream(client::Client::path_of(apis::run_kind(), line.ns(), name, "log"), params,
                       "text/plain", [&](std::string_view text) {
                         print_text(std::cout, std::string(text) + "\n");
                         if (line.on("follow")) std::cout.flush();
                         return true;
                       });
  return kOk;
}

// The server's path below the folder; refuses what would leave it.
std::filesystem::path target_path(const std::filesystem::path& folder, const std::string& path) {
  const std::filesystem::path relative = std::filesystem::path(path).lexically_normal();
  if (relative.is_absolute() || relative.empty() || *relative.begin() == "..")
    throw Error(Code::invalid, "the server names an artifact " + json::quote(path) +
                                   " that would be written outside of the folder");
  return folder / relative;
}

int artifacts(Invocation& line) {
  for (const char* form : {"json", "yaml", "name", "wide"})
    if (line.get("output") == form)
      throw Error(Code::bad_request,
                  std::string("-o is the folder that the files go to, \"") + form +
                      "\" is a form of output: for a folder of that name say ./" + form +
                      "; without -o they are listed");
  const std::string name = run_name(line, only_argument(line, "run: umpctl artifacts run/NAME"));
  const std::string path = client::Client::path_of(apis::run_kind(), line.ns(), name, "artifacts");
  const json::Value run = line.client().get(apis::run_kind(), line.ns(), name);
  const json::Value& list = run.at_path({"status", "artifacts"});
  if (list.size() == 0) {
    std::cerr << "run/" << name << " has no artifacts\n";
    return kOk;
  }
  for (const json::Value& a : list.items()) {
    const std::string file = a.get_string("path");
    if (!line.given("output")) {
      std::cout << file << "  " << a.get_int("size") << "  " << a.get_string("digest") << "\n";
      continue;
    }
    const std::filesystem::path target = target_path(line.get("output"), file);
    std::filesystem::create_directories(target.parent_path());
    std::string url = path;
    for (const auto& part : std::filesystem::path(file))
      url += "/" + http::percent_encode(part.string());
    write_file_durably(target, line.client().send("GET", url, {}, "", "", "*/*").body, 0644);
    std::cout << target.string() << "\n";
  }
  return kOk;
}

}  // namespace

void add_run_commands(std::vector<Command>& table) {
  const Flag follow_flag{"follow", 'f', "", "show the timeline until the run has ended"};
  table.push_back(
      {"run",
       "JOB",
       "Start a job now",
       "umpctl run hello --input '{\"n\":3}' --follow\n\nWith --follow or --wait the exit "
       "code is 0 when the run succeeded, else 1. The run goes on after Ctrl-C.",
       {{"input", 0, "JSON", "the run's input"},
        {"input-file", 0, "FILE",
         "the run's input from a file; text that is not JSON becomes a string"},
        {"instructions", 0, "TEXT", "added to the job's instruction, for this run"},
        follow_flag,
        {"wait", 0, "", "wait until the run has ended"},
        kOutputFlag},
       run});
  table.push_back({"cancel",
                   "run/NAME…",
                   "Cancel runs that are queued or under way",
                   "A run that has ended already is named, and the exit code is 1.",
                   {},
                   cancel});
  table.push_back({"retry",
                   "run/NAME",
                   "Start a run's job again with the same input",
                   "",
                   {follow_flag},
                   retry});
  table.push_back({"timeline",
                   "run/NAME | job/NAME",
                   "Show what a run did",
                   "job/NAME is its newest run. -o json prints the events as they are kept.",
                   {follow_flag, kOutputFlag},
                   timeline});
  table.push_back({"logs",
                   "run/NAME | job/NAME",
                   "Show all that a run recorded, in full, as log lines",
                   "",
                   {{"follow", 'f', "", "go on until the run has ended"}},
                   logs});
  table.push_back({"artifacts",
                   "run/NAME | job/NAME",
                   "List or fetch the files a run left",
                   "umpctl artifacts run/hello-abc -o ./out",
                   {{"output", 'o', "FOLDER", "write them there"}},
                   artifacts});
}

}  // namespace umpteenth::umpctl
