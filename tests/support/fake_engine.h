// A container engine in memory that behaves as engine.h says. Commands are C++ functions; the rest
// of the world (an engine that is down or slow, a container that dies) is at the test's hand.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"

namespace umpteenth::support {

struct FakeFile {
  std::string data;
  int mode = 0644;
  int64_t uid = 0, gid = 0;
  bool directory = false;
};
using FakeFiles = std::map<std::string, FakeFile>;  // by absolute path

class FakeEngine;

// What a scripted command sees. Blocking calls end early when the container dies.
class FakeProcess {
 public:
  struct Shared;
  FakeProcess(FakeEngine& engine, std::shared_ptr<Shared> shared);
  const std::vector<std::string>& argv() const;
  const engine::ExecSpec& spec() const;
  const std::string& container() const;  // its id
  void out(std::string_view bytes);
  void err(std::string_view bytes);
  std::optional<std::string> read_stdin();  // the next chunk; nullopt at its end
  std::string read_all_stdin();
  bool sleep(Duration d);    // false when killed meanwhile
  bool wait_until_killed();  // for a command that never ends by itself; always false
  bool killed() const;
  std::optional<std::string> read_file(const std::string& path) const;
  void write_file(const std::string& path, std::string_view data, int mode = 0644);

 private:
  FakeEngine& engine_;
  std::shared_ptr<Shared> shared_;
};

using FakeCommand = std::function<int(FakeProcess&)>;  // returns the exit code
using ArgvMatch = std::function<bool(const std::vector<std::string>&)>;
ArgvMatch argv_has(std::string part);  // one argument contains the text
ArgvMatch argv_is(std::vector<std::string> argv);

class FakeEngine : public engine::Engine {
 public:
  FakeEngine();
  ~FakeEngine() override;

  // Scripts. The one registered last wins; what none matches exits 127 and says so on stderr.
  void on_exec(ArgvMatch match, FakeCommand command);
  void add_image(engine::Image image, FakeFiles files = {});
  std::string add_image(const std::string& name, const std::string& arch = "amd64");  // its id

  // Troubles.
  void set_disk_limit(bool enforced) { disk_limit_ = enforced; }
  void set_down(bool down);  // every call fails, running execs and event streams break
  void kill_container(const std::string& id_or_name, int exit_code = 137, bool oom = false);
  void set_pid(const std::string& id_or_name, int64_t pid);             // what inspect says
  void kill_commands(const ArgvMatch& match, int exit_code = 137);      // as `ump exec --kill` does
  void fail_next(const std::string& call, Error error);                 // one call of that name
  void before_each(std::function<void(const std::string& call)> hook);  // may block or throw

  // What happened: "create_container ump-1", "exec ID sh -c …", in order.
  std::vector<std::string> calls() const;
  size_t count_calls(const std::string& name) const;
  void forget_calls();
  std::optional<engine::ContainerSpec> spec_of(const std::string& id_or_name) const;
  std::vector<engine::ExecSpec> execs() const;
  FakeFiles files_of(const std::string& id_or_name) const;
  void put_file(const std::string& id_or_name, const std::string& path, FakeFile file);

  engine::Info info() override;
  std::string create_container(const engine::ContainerSpec& spec) override;
  void start_container(const std::string& id) override;
  void stop_container(const std::string& id, Duration grace) override;
  void remove_container(const std::string& id) override;
  std::optional<engine::Container> find_container(const std::string& id_or_name) override;
  std::vector<engine::Container> list_containers(const engine::Labels& labels) override;
  int64_t container_disk_bytes(const std::string& id) override;
  std::string container_logs(const std::string& id, size_t max_bytes) override;
  std::string create_network(const engine::NetworkSpec& spec) override;
  void remove_network(const std::string& id) override;
  std::optional<engine::Network> find_network(const std::string& id_or_name) override;
  std::vector<engine::Network> list_networks(const engine::Labels& labels) override;
  void connect_network(const std::string& network, const std::string& container,
                       const engine::NetworkAttachment& how) override;
  void disconnect_network(const std::string& network, const std::string& container) override;
  std::unique_ptr<engine::Exec> exec(const std::string& container, const engine::ExecSpec& spec,
                                     engine::OutputSink on_output) override;
  void put_archive(const std::string& container, const std::string& path,
                   std::string_view tar) override;
  std::string get_archive(const std::string& container, const std::string& path,
                          size_t max_bytes) override;
  std::optional<engine::Image> find_image(const std::string& id_or_name) override;
  std::vector<engine::Image> list_images(const engine::Labels& labels) override;
  std::string import_image(std::string_view tar, const std::string& name,
                           const engine::ImageChanges& changes) override;
  std::string commit_container(const std::string& container, const std::string& name,
                               const engine::ImageChanges& changes) override;
  void pull_image(const std::string& name, std::stop_token stop) override;
  void remove_image(const std::string& id) override;
  void events(const engine::Labels& labels, std::function<void(const engine::EngineEvent&)> sink,
              std::stop_token stop) override;

 private:
  friend class FakeProcess;
  struct FakeContainer;
  struct FakeImage;
  struct Subscriber;
  using Lock = std::unique_lock<std::recursive_mutex>;

  Lock enter(const std::string& call, const std::string& about);
  FakeContainer& container(const std::string& id_or_name);
  engine::Network& network(const std::string& id_or_name);
  FakeImage& image(const std::string& id_or_name);
  std::string store_image(engine::Image image, FakeFiles files, const std::string& name);
  void attach(engine::Network& net, FakeContainer& to, const engine::NetworkAttachment& how);
  void refresh_members(engine::Network& net);
  void end(FakeContainer& c, int exit_code, bool oom);
  void emit(const std::string& type, const std::string& action, const std::string& id,
            engine::Labels attributes);
  std::string new_id();

  mutable std::recursive_mutex mutex_;
  std::condition_variable_any changed_;
  bool down_ = false;
  std::atomic<bool> disk_limit_{false};
  int next_ = 1;
  int64_t ticks_ = 0;
  std::map<std::string, std::unique_ptr<FakeContainer>> containers_;
  std::map<std::string, engine::Network> networks_;
  std::map<std::string, std::unique_ptr<FakeImage>> images_;
  std::list<std::pair<ArgvMatch, FakeCommand>> commands_;
  std::multimap<std::string, Error> failures_;
  std::function<void(const std::string&)> hook_;
  std::vector<std::string> calls_;
  std::vector<engine::ExecSpec> execs_;
  std::set<std::shared_ptr<Subscriber>> subscribers_;
  std::vector<std::shared_ptr<FakeProcess::Shared>> processes_;
};

}  // namespace umpteenth::support
