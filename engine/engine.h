// The seam to a container engine. DockerEngine (docker.h) speaks the Docker Engine API;
// FakeEngine (tests/support) passes the same contract suite. All calls block, are safe from several
// threads and throw: unavailable (engine down: not a dead run), not_found, conflict, timeout,
// invalid (the engine refused the parameters), internal (the engine's 500, with its clipped text).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/types.h"

namespace umpteenth::engine {

struct ExecSpec {
  std::vector<std::string> argv;  // passed through, no shell
  std::vector<std::string> env;   // NAME=value; secrets are allowed here
  std::string user;               // "1000:1000"
  std::string working_dir;
  bool attach_stdin = false;
};

// A started exec. Output comes through on_output, called on the reader's thread; stdout and stderr
// are told apart. wait() returns the exit code. Destroying it drops the connection, not the
// process.
class Exec {
 public:
  virtual ~Exec() = default;
  virtual void write_stdin(std::string_view bytes) = 0;  // blocks (back-pressure)
  virtual void close_stdin() = 0;
  // nullopt at the deadline or when stop was requested; Error(unavailable) engine lost;
  // Error(not_found, "sandbox is gone…") container died.
  virtual std::optional<int> wait(Duration timeout, std::stop_token stop = {}) = 0;
};

enum class Output { out, err };
using OutputSink = std::function<void(Output, std::string_view)>;

class Engine {
 public:
  virtual ~Engine() = default;

  virtual Info info() = 0;

  virtual std::string create_container(const ContainerSpec& spec) = 0;  // the id
  virtual void start_container(const std::string& id) = 0;
  // SIGTERM, then SIGKILL after the grace; already stopped is success.
  virtual void stop_container(const std::string& id, Duration grace) = 0;
  virtual void remove_container(
      const std::string& id) = 0;  // forced, with volumes; gone is success
  virtual std::optional<Container> find_container(const std::string& id_or_name) = 0;
  // Complete or throws. All labels must match; "" as value = the label exists.
  virtual std::vector<Container> list_containers(const Labels& labels) = 0;
  virtual int64_t container_disk_bytes(const std::string& id) = 0;  // SizeRw
  virtual std::string container_logs(const std::string& id, size_t max_bytes) = 0;

  virtual std::string create_network(const NetworkSpec& spec) = 0;  // a Warning is an error
  virtual void remove_network(const std::string& id) = 0;  // endpoints are disconnected first
  virtual std::optional<Network> find_network(const std::string& id_or_name) = 0;
  virtual std::vector<Network> list_networks(const Labels& labels) = 0;  // {} = all
  virtual void connect_network(const std::string& network, const std::string& container,
                               const NetworkAttachment& how) = 0;
  virtual void disconnect_network(const std::string& network, const std::string& container) = 0;

  virtual std::unique_ptr<Exec> exec(const std::string& container, const ExecSpec& spec,
                                     OutputSink on_output) = 0;

  // Tar archives. put: as root, follows links inside the container, so only before untrusted code
  // runs. get: Error(too_large) beyond max_bytes.
  virtual void put_archive(const std::string& container, const std::string& path,
                           std::string_view tar) = 0;
  virtual std::string get_archive(const std::string& container, const std::string& path,
                                  size_t max_bytes) = 0;

  virtual std::optional<Image> find_image(const std::string& id_or_name) = 0;
  virtual std::vector<Image> list_images(const Labels& labels) = 0;
  virtual std::string import_image(std::string_view tar, const std::string& name,
                                   const ImageChanges& changes) = 0;  // the id
  virtual std::string commit_container(const std::string& container, const std::string& name,
                                       const ImageChanges& changes) = 0;
  virtual void pull_image(const std::string& name, std::stop_token stop) = 0;
  virtual void remove_image(const std::string& id) = 0;

  // Calls sink for each event of containers and images that carry the labels, and of every network
  // (engines put no labels in those), until stop, on the calling thread; Error(unavailable) when
  // the stream breaks (the caller opens another and lists again).
  virtual void events(const Labels& labels, std::function<void(const EngineEvent&)> sink,
                      std::stop_token stop) = 0;
};

}  // namespace umpteenth::engine
