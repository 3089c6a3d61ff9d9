// Who may include whom (docs/architecture.md), where each third-party library may appear, where
// virtual functions may be declared, and which files may be run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.h"
#include "tests/support/paths.h"

namespace umpteenth {
namespace {

namespace fs = std::filesystem;

struct Source {
  std::string path;  // below the project's folder
  std::string text;
};

const std::set<std::string> kFolders{"apis",        "store",  "engine", "runs",   "models",
                                     "agent",       "broker", "server", "client", "ump",
                                     "controllers", "base",   "cmd",    "tests"};

bool starts_with_any(const std::string& path, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return path.starts_with(prefix); });
}

std::string folder_of(const std::string& path) { return path.substr(0, path.find('/')); }

// Every file that is ours: no build folders, no fetched packages, no state of tools.
std::vector<fs::path> all_files() {
  std::vector<fs::path> files;
  const fs::path root = support::source_dir();
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator();
       ++it) {
    const std::string name = it->path().filename();
    const bool skipped = (name.starts_with('.') && name != ".ci") || name.starts_with("build") ||
                         name == "node_modules" || name == "dist";
    if (it->is_directory() && skipped) it.disable_recursion_pending();
    if (it->is_regular_file() && !it->is_symlink()) files.push_back(it->path());
  }
  return files;
}

std::vector<Source> sources() {
  std::vector<Source> found;
  for (const fs::path& file : all_files()) {
    const std::string path = fs::relative(file, support::source_dir());
    const bool code = path.ends_with(".h") || path.ends_with(".cc");
    if (code && kFolders.contains(folder_of(path))) found.push_back({path, read_file(file)});
  }
  return found;
}

std::vector<std::string> includes(const std::string& text, char open) {
  static const std::regex pattern(R"(#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"])");
  std::vector<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
    if ((*it)[1].str()[0] == open) names.push_back((*it)[2]);
  return names;
}

// What a folder may include besides itself: prefixes of paths.
const std::map<std::string, std::vector<std::string>> kMayInclude{
    {"base", {}},
    {"apis", {"base/"}},
    {"store", {"apis/", "base/"}},
    {"engine", {"apis/", "base/"}},
    {"runs", {"apis/", "base/", "store/store.h"}},
    {"models", {"apis/", "base/"}},
    {"agent", {"apis/", "base/", "runs/", "models/"}},
    {"broker", {"apis/", "base/", "runs/", "models/"}},
    {"controllers",
     {"apis/", "base/", "store/store.h", "engine/engine.h", "engine/types.h", "engine/tar.h",
      "engine/names.h", "engine/sandbox_images.h", "engine/egress_networks.h", "engine/firewall/",
      "runs/", "agent/agent.h", "broker/broker.h", "models/model_client.h", "models/providers.h"}},
    {"server", {"apis/", "base/", "store/store.h", "runs/"}},
    {"client", {"apis/", "base/"}},
    {"ump", {}},
};

// A plan has no I/O: it sees values only. Its neighbours' pure headers count as its own.
const std::vector<std::string> kPlanMayInclude{"apis/",
                                               "engine/types.h",
                                               "engine/egress_networks.h",
                                               "engine/firewall/inspect.h",
                                               "base/clock.h",
                                               "base/error.h",
                                               "base/json.h",
                                               "base/net/",
                                               "base/overloaded.h",
                                               "controllers/"};

TEST(IncludeDirection, every_folder_includes_only_what_the_architecture_allows) {
  const std::regex plan(R"(controllers/.*/plan\.(h|cc))");
  size_t seen = 0;
  for (const Source& source : sources()) {
    const std::string folder = folder_of(source.path);
    const auto rule = kMayInclude.find(folder);
    if (rule == kMayInclude.end()) continue;  // cmd and tests: everything
    const bool is_plan = std::regex_match(source.path, plan);
    for (const std::string& name : includes(source.text, '"')) {
      ++seen;
      const bool ours = name.starts_with(folder + "/");
      const bool allowed = is_plan ? starts_with_any(name, kPlanMayInclude)
                                   : ours || starts_with_any(name, rule->second);
      EXPECT_TRUE(allowed) << source.path << " includes " << name;
      EXPECT_TRUE(fs::exists(fs::path(support::source_dir()) / name))
          << source.path << ": " << name << " is not a path from the project's folder";
    }
  }
  EXPECT_GT(seen, 100U) << "the scan found no includes: is source_dir() right?";
}

TEST(IncludeDirection, third_party_headers_stay_in_their_places) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> places{
      {"boost/", {"base/http/"}},
      {"openssl/", {"base/http/", "base/crypto.cc", "base/openssl_error.cc", "base/x509.cc"}},
      {"curl/", {"base/outbound.cc"}},
      {"date/", {"base/time_zone.cc"}},
      {"spdlog/", {"base/log.cc"}},
      {"fmt/", {"base/log.cc"}},
      // Header-only, so that nothing is linked into the program in the sandbox.
      {"rapidjson/", {"base/json.cc", "ump/json.cc"}},
      {"yaml-cpp/", {"apis/"}},
      {"git2", {"store/"}},
      {"sqlite3", {"store/"}},
      {"cpprest/", {"client/"}},
      {"pplx/", {"client/"}},
      {"gtest/", {"tests/"}},
      {"gmock/", {"tests/"}},
  };
  for (const Source& source : sources()) {
    for (const std::string& name : includes(source.text, '<')) {
      const auto row = std::find_if(places.begin(), places.end(),
                                    [&](const auto& p) { return name.starts_with(p.first); });
      if (row == places.end()) {
        // The standard library has no folders; the C library's and the kernel's are few.
        const bool system =
            name.find('/') == std::string::npos ||
            starts_with_any(name, {"sys/", "netinet/", "net/", "arpa/", "linux/", "asm/", "bits/"});
        EXPECT_TRUE(system) << source.path << " includes <" << name << ">, of no known library";
        continue;
      }
      EXPECT_TRUE(starts_with_any(source.path, row->second))
          << source.path << " includes <" << name << ">";
      // Headers would carry the library to everyone; the client's are all about it.
      const bool header = source.path.ends_with(".h") && !source.path.starts_with("tests/") &&
                          !source.path.starts_with("client/");
      EXPECT_FALSE(header) << source.path << " shows <" << name << "> to all who include it";
    }
  }
}

TEST(IncludeDirection, boost_is_paid_for_four_times_at_most) {
  std::set<std::string> users;
  for (const Source& source : sources())
    for (const std::string& name : includes(source.text, '<'))
      if (name.starts_with("boost/")) users.insert(source.path);
  EXPECT_LE(users.size(), 4U);
  EXPECT_GT(users.size(), 0U);
}

TEST(IncludeDirection, virtual_functions_are_declared_at_the_seams_only) {
  const std::set<std::string> seams{
      "store/store.h",  "engine/engine.h",       "base/subprocess.h",
      "base/clock.h",   "models/model_client.h", "runs/sandbox_io.h",
      "server/ports.h", "base/http/client.h",    "engine/firewall/host_access.h",
  };
  const std::regex pattern(R"((^|[\s(])virtual\s)");
  std::set<std::string> found;
  for (const Source& source : sources()) {
    if (source.path.starts_with("tests/")) continue;
    std::string code;
    std::istringstream lines(source.text);
    for (std::string line; std::getline(lines, line);)
      code += line.substr(0, line.find("//")) + "\n";
    if (!std::regex_search(code, pattern)) continue;
    found.insert(source.path);
    EXPECT_TRUE(seams.contains(source.path)) << source.path << " declares a virtual function";
  }
  EXPECT_EQ(found, seams);
}

TEST(Tree, what_begins_with_a_shebang_can_be_run_and_nothing_else) {
  size_t runnable = 0;
  for (const fs::path& file : all_files()) {
    const std::string path = fs::relative(file, support::source_dir());
    const bool can_run =
        (fs::status(file).permissions() & fs::perms::owner_exec) != fs::perms::none;
    std::ifstream stream(file, std::ios::binary);
    char first[2] = {};
    stream.read(first, 2);
    const bool script = stream.gcount() == 2 && first[0] == '#' && first[1] == '!';
    EXPECT_EQ(can_run, script) << path;
    runnable += script;
  }
  EXPECT_GT(runnable, 0U);
}

TEST(Tree, no_source_leaves_work_for_another_day) {
  // Written in two halves, so that this file does not find itself.
  const std::vector<std::string> words{std::string("TO") + "DO", std::string("FIX") + "ME",
                                       std::string("XX") + "X:", std::string("HA") + "CK"};
  for (const Source& source : sources())
    for (const std::string& word : words)
      EXPECT_EQ(source.text.find(word), std::string::npos) << source.path << " says " << word;
}

}  // namespace
}  // namespace umpteenth
