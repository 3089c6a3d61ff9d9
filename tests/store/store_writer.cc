// A program for the crash tests: writes as fast as it can and says on standard output, a line at a
// time, what was acknowledged. Arguments: data folder, prefix of names, threads, seconds.
//
// Each name has a sequence of states: number n is an object whose instruction is n, or, where
// n % 7 == 6, no object. A line is "<kind> <name> <n> <revision>".
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "store/open.h"

namespace umpteenth::store {
namespace {

using Clock = std::chrono::steady_clock;

json::Value object_of(const Key& key, int n) {
  const json::Value text = std::to_string(n);
  json::Value object = json::Value::object(
      {{"apiVersion", "umpteenth.dev/v1alpha1"},
       {"kind", key.kind == "jobs" ? "Job" : "Run"},
       {"metadata", json::Value::object({{"name", key.name},
                                         {"namespace", key.ns},
                                         {"uid", "uid-" + key.name},
                                         {"generation", n + 1}})},
       {"spec", json::Value::object({{"instruction", text}, {"filler", std::string(300, 'f')}})}});
  if (n % 2 == 1) object.set("status", json::Value::object({{"seen", text}}));
  return object;
}

Change change_of(const Key& key, int n) {
  if (n % 7 == 6) return {Verb::remove, key, {}, {}};
  return {n % 7 == 0 ? Verb::create : Verb::update, key, object_of(key, n), {}};
}

void say(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(3);
}

std::string line_of(const Key& key, int n, uint64_t revision) {
  return key.kind + " " + key.name + " " + std::to_string(n) + " " + std::to_string(revision) +
         "\n";
}

void write_for(Store& store, const std::string& prefix, Clock::time_point end) {
  const Key one{"jobs", "default", prefix + "-one"}, run{"runs", "default", prefix + "-run"};
  const Key left{"jobs", "default", prefix + "-left"}, right{"jobs", "web", prefix + "-right"};
  for (int n = 0; Clock::now() < end; ++n) {
    say(line_of(one, n, store.commit_one(change_of(one, n), "tester", "one")->revision));
    const auto both = store.commit({{change_of(left, n), change_of(right, n)}, "tester", "a pair"});
    say(line_of(left, n, both[0]->revision) + line_of(right, n, both[1]->revision));
    if (n % 4 == 0)
      say(line_of(run, n / 4, store.commit_one(change_of(run, n / 4), "tester", "run")->revision));
  }
}

int run(const std::string& folder, const std::string& prefix, int threads, int milliseconds) {
  Options options;
  options.data_dir = folder;
  const auto store = open_store(options);
  say("ready\n");
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  std::vector<std::thread> writers;
  for (int t = 0; t < threads; ++t)
    writers.emplace_back([&, t] { write_for(*store, prefix + "-" + std::to_string(t), end); });
  for (auto& writer : writers) writer.join();
  return 0;
}

}  // namespace
}  // namespace umpteenth::store

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    return umpteenth::store::run(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  } catch (const umpteenth::Error& e) {
    std::fprintf(stderr, "store_writer: %s\n", e.what());
    return 1;
  }
}
