#include <algorithm>
#include <array>
#include <thread>

#include "base/fd.h"
#include "engine/docker_engine.h"
#include "engine/docker_json.h"
#include "engine/frames.h"

namespace umpteenth::engine {
namespace {

constexpr Duration kStartTimeout{180'000};
constexpr Duration kRemoveTimeout{120'000};
constexpr Duration kRemovalWait{20'000};
constexpr Duration kPoll{50};
constexpr int kRemoveTries = 4;
constexpr size_t kMaxLogRead = 16U << 20;

std::string container_path(const std::string& id, std::string_view rest = "") {
  return "/containers/" + path_segment(id) + std::string(rest);
}

}  // namespace

std::unique_ptr<Engine> make_docker_engine(const DockerOptions& options) {
  return std::make_unique<DockerEngine>(options);
}

DockerEngine::DockerEngine(const DockerOptions& options)
    : api_(std::make_shared<DockerApi>(options.endpoint)),
      starts_(std::max(1, options.concurrent_starts)) {}

Info DockerEngine::info() { return info_from(api_->get("/info"), api_->version()); }

std::optional<json::Value> DockerEngine::inspect(const std::string& kind,
                                                 const std::string& id_or_name) {
  if (id_or_name.empty()) return std::nullopt;
  ApiCall call;
  call.path =
      "/" + kind + "/" + (kind == "images" ? image_path(id_or_name) : path_segment(id_or_name));
  if (kind != "networks") call.path += "/json";
  call.also_fine = {404};
  const http::Response answer = api_->send(call);
  if (answer.status == 404) return std::nullopt;
  return json::parse(answer.body);
}

std::string DockerEngine::create_container(const ContainerSpec& spec) {
  const std::string what = "create container \"" + spec.name + "\"";
  std::string id;
  try {
    const json::Value made =
        api_->post("/containers/create", container_body(spec), {{"name", spec.name}});
    id = made.get_string("Id");
  } catch (Error& e) {
    throw e.in(what);
  }
  try {
    for (size_t i = 1; i < spec.networks.size(); ++i)
      connect_network(spec.networks[i].network, id, spec.networks[i]);
  } catch (Error& e) {  // a container without all its networks must not be left to be started
    remove_container(id);
    throw e.in(what);
  }
  return id;
}

void DockerEngine::start_container(const std::string& id) {
  starts_.acquire();
  const Defer release([&] { starts_.release(); });
  ApiCall call;
  call.method = "POST";
  call.path = container_path(id, "/start");
  call.timeout = kStartTimeout;
  call.also_fine = {304};
  try {
    api_->send(call);
  } catch (Error& e) {
    throw e.in("start container " + id.substr(0, 12));
  }
}

void DockerEngine::stop_container(const std::string& id, Duration grace) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(grace).count();
  ApiCall call;
  call.method = "POST";
  call.path = container_path(id, "/stop");
  call.query = {{"t", std::to_string(seconds)}};
  call.timeout = grace + kRemoveTimeout;
  call.also_fine = {304};
  try {
    api_->send(call);
  } catch (Error& e) {
    throw e.in("stop container " + id.substr(0, 12));
  }
}

bool DockerEngine::wait_until_gone(const std::string& id) {
  for (Duration waited{0}; waited < kRemovalWait; waited += kPoll) {
    if (!inspect("containers", id)) return true;
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}

// A removal may be under way already (moby#22312), or fail while something of the container is
// still busy: it is asked again, and waited for.
void DockerEngine::remove_container(const std::string& id) {
  ApiCall call;
  call.method = "DELETE";
  call.path = container_path(id);
  call.query = {{"force", "1"}, {"v", "1"}};
  call.timeout = kRemoveTimeout;
  call.also_fine = {404};
  for (int attempt = 1;; ++attempt) {
    try {
      api_->send(call);
      return;
    } catch (Error& e) {
      const bool under_way = e.message().find("already in progress") != std::string::npos;
      if (under_way && wait_until_gone(id)) return;
      const bool again = e.code() == Code::internal || e.code() == Code::conflict;
      if (!again || under_way || attempt == kRemoveTries)
        throw e.in("remove container " + id.substr(0, 12));
    }
    std::this_thread::sleep_for(kPoll * (1 << (2 * attempt)));
  }
}

std::optional<Container> DockerEngine::find_container(const std::string& id_or_name) {
  const auto v = inspect("containers", id_or_name);
  if (!v) return std::nullopt;
  Container c = container_from_inspect(*v);
  // The engine also answers for what merely begins like an id.
  if (c.id != id_or_name && c.name != id_or_name) return std::nullopt;
  return c;
}

std::vector<Container> DockerEngine::list_containers(const Labels& labels) {
  std::vector<Container> all;
  const json::Value list =
      api_->get("/containers/json", {{"all", "1"}, {"filters", label_filter(labels)}});
  for (const json::Value& v : list.items()) all.push_back(container_from_list(v));
  return all;
}

int64_t DockerEngine::container_disk_bytes(const std::string& id) {
  return api_->get(container_path(id, "/json"), {{"size", "1"}}).get_int("SizeRw");
}

std::string DockerEngine::container_logs(const std::string& id, size_t max_bytes) {
  ApiCall call;
  call.path = container_path(id, "/logs");
  call.query = {{"stdout", "1"}, {"stderr", "1"}, {"tail", "1000"}};
  const auto reader = api_->open(call);
  std::string text;
  FrameReader frames([&](Output, std::string_view bytes) {
    text += bytes;
    if (text.size() > 2 * max_bytes) text.erase(0, text.size() - max_bytes);
  });
  std::array<char, 16'384> buffer{};
  for (size_t total = 0; total < kMaxLogRead;) {
    const size_t n = reader->read(buffer.data(), buffer.size(), Duration{10'000});
    if (n == 0) break;
    total += n;
    frames.feed({buffer.data(), n});
  }
  if (text.size() > max_bytes) text.erase(0, text.size() - max_bytes);
  return text;
}

void DockerEngine::put_archive(const std::string& container, const std::string& path,
                               std::string_view tar) {
  ApiCall call;
  call.method = "PUT";
  call.path = container_path(container, "/archive");
  call.query = {{"path", path}};
  call.body = tar;
  call.content_type = "application/x-tar";
  call.timeout = Duration{180'000};
  try {
    api_->send(call);
  } catch (Error& e) {
    throw e.in("copy into " + path + " of container " + container.substr(0, 12));
  }
}

std::string DockerEngine::get_archive(const std::string& container, const std::string& path,
                                      size_t max_bytes) {
  ApiCall call;
  call.path = container_path(container, "/archive");
  call.query = {{"path", path}};
  call.timeout = Duration{180'000};
  call.max_body = std::max<size_t>(max_bytes, 16'384);  // the engine's refusals fit too
  try {
    std::string tar = api_->send(call).body;
    if (tar.size() > max_bytes)
      throw Error(Code::too_large, "more than " + std::to_string(max_bytes) + " bytes");
    return tar;
  } catch (Error& e) {
    throw e.in("copy " + path + " out of container " + container.substr(0, 12));
  }
}

}  // namespace umpteenth::engine
