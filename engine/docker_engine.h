// The Engine over DockerApi; its parts are in docker_containers.cc, docker_networks.cc,
// docker_images.cc and docker_exec.cc.
#pragma once

#include <semaphore>

#include "engine/docker.h"
#include "engine/docker_api.h"

namespace umpteenth::engine {

class DockerEngine : public Engine {
 public:
  explicit DockerEngine(const DockerOptions& options);

  Info info() override;
  std::string create_container(const ContainerSpec& spec) override;
  void start_container(const std::string& id) override;
  void stop_container(const std::string& id, Duration grace) override;
  void remove_container(const std::string& id) override;
  std::optional<Container> find_container(const std::string& id_or_name) override;
  std::vector<Container> list_containers(const Labels& labels) override;
  int64_t container_disk_bytes(const std::string& id) override;
  std::string container_logs(const std::string& id, size_t max_bytes) override;
  std::string create_network(const NetworkSpec& spec) override;
  void remove_network(const std::string& id) override;
  std::optional<Network> find_network(const std::string& id_or_name) override;
  std::vector<Network> list_networks(const Labels& labels) override;
  void connect_network(const std::string& network, const std::string& container,
                       const NetworkAttachment& how) override;
  void disconnect_network(const std::string& network, const std::string& container) override;
  std::unique_ptr<Exec> exec(const std::string& container, const ExecSpec& spec,
                             OutputSink on_output) override;
  void put_archive(const std::string& container, const std::string& path,
                   std::string_view tar) override;
  std::string get_archive(const std::string& container, const std::string& path,
                          size_t max_bytes) override;
  std::optional<Image> find_image(const std::string& id_or_name) override;
  std::vector<Image> list_images(const Labels& labels) override;
  std::string import_image(std::string_view tar, const std::string& name,
                           const ImageChanges& changes) override;
  std::string commit_container(const std::string& container, const std::string& name,
                               const ImageChanges& changes) override;
  void pull_image(const std::string& name, std::stop_token stop) override;
  void remove_image(const std::string& id) override;
  void events(const Labels& labels, std::function<void(const EngineEvent&)> sink,
              std::stop_token stop) override;

 private:
  std::optional<json::Value> inspect(const std::string& kind, const std::string& id_or_name);
  bool wait_until_gone(const std::string& id);
  void disconnect_members(const std::string& network);

  // Shared with the execs, which may outlive a moved engine.
  std::shared_ptr<DockerApi> api_;
  std::counting_semaphore<> starts_;
};

// Error(not_found, "sandbox is gone: …"), or nothing where the container runs.
std::optional<Error> gone_error(DockerApi& api, const std::string& container,
                                std::stop_token stop = {});

std::unique_ptr<Exec> start_exec(std::shared_ptr<DockerApi> api, const std::string& container,
                                 const ExecSpec& spec, OutputSink on_output);

}  // namespace umpteenth::engine
