#include "tests/support/local_sandbox.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/fake_sandbox.h"

namespace umpteenth::support {
namespace {

namespace fs = std::filesystem;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void spill(const fs::path& path, std::string_view bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  if (!file.flush()) throw Error(Code::internal, "writing " + path.string());
}

}  // namespace

LocalSandbox::LocalSandbox(const json::Value& input) {
  std::string pattern = (fs::temp_directory_path() / "ump-sandbox-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw errno_error(Code::internal, "making a temporary folder");
  root_ = pattern;
  for (const char* folder : {"workspace", "ump/outputs", "ump/logs", "bin"})
    fs::create_directories(root_ / folder);
  spill(root_ / "ump/input.json", input.is_null() ? "{}" : input.dump());
  spill(root_ / "bin/ump", "#!" + (root_ / "bin/sh").string() + "\necho \"$@\" >> " +
                               (root_ / "calls").string() + "\n");
  fs::permissions(root_ / "bin/ump", fs::perms::owner_all);
  Command install;
  install.argv = {"busybox", "--install", "-s", (root_ / "bin").string()};
  const CommandResult installed = system_runner().run(install);
  if (installed.exit_code != 0) throw Error(Code::internal, "busybox --install: " + installed.err);
}

LocalSandbox::~LocalSandbox() {
  std::error_code ignored;  // a destructor does not throw
  fs::remove_all(root_, ignored);
}

fs::path LocalSandbox::host_path(const std::string& path) const {
  return root_ / fs::path(path).relative_path();
}

std::string LocalSandbox::inward(std::string text) const {
  text = replaced(std::move(text), "/ump/", root_.string() + "/ump/");
  return replaced(std::move(text), "/workspace", root_.string() + "/workspace");
}

std::string LocalSandbox::outward(std::string text) const {
  return replaced(std::move(text), root_.string(), "");
}

runs::ExecOutcome LocalSandbox::exec(const runs::ExecRequest& request, std::stop_token stop) {
  Command command;
  if (request.argv.size() == 3 && request.argv[0] == "bash")
    command.argv = {(root_ / "bin/sh").string(), "-c", "exec 2>&1; eval \"$1\"", "sh",
                    inward(request.argv[2])};
  else
    for (const std::string& word : request.argv) command.argv.push_back(inward(word));
  command.env = {"PATH=" + (root_ / "bin").string(), "HOME=" + (root_ / "workspace").string()};
  command.working_dir = (root_ / "workspace").string();
  command.timeout = request.timeout;
  const CommandResult result = system_runner().run(command, stop);
  const std::string output = outward(result.out + result.err);
  if (request.on_output && !output.empty()) request.on_output(output);
  runs::ExecOutcome outcome;
  outcome.exit_code = result.exit_code;
  outcome.timed_out = result.timed_out;
  outcome.total_bytes = output.size();
  outcome.output = cut(output, request.keep_head, request.keep_tail);
  outcome.stdout_only = outward(result.out);
  return outcome;
}

std::string LocalSandbox::read_file(const std::string& path, size_t max_bytes, std::stop_token) {
  const fs::path host = host_path(path);
  if (!fs::is_regular_file(host)) throw Error(Code::not_found, "no such file: " + path);
  if (fs::file_size(host) > max_bytes)
    throw Error(Code::too_large, path + " is larger than " + std::to_string(max_bytes) + " bytes");
  return outward(slurp(host));
}

// Texts of scripts name sandbox paths too.
void LocalSandbox::write_file(const std::string& path, std::string_view bytes, int mode,
                              std::stop_token) {
  spill(host_path(path), inward(std::string(bytes)));
  fs::permissions(host_path(path), static_cast<fs::perms>(mode));
}

std::vector<std::string> LocalSandbox::ump_calls() const {
  std::vector<std::string> calls;
  std::ifstream file(root_ / "calls");
  for (std::string line; std::getline(file, line);) calls.push_back(line);
  return calls;
}

std::string LocalSandbox::artifact(const std::string& name) const {
  return slurp(root_ / "ump/outputs" / name);
}

}  // namespace umpteenth::support
