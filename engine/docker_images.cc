#include <algorithm>

#include "base/log.h"
#include "engine/docker_engine.h"
#include "engine/docker_json.h"

namespace umpteenth::engine {
namespace {

constexpr Duration kImageTimeout{300'000};
constexpr Duration kPullIdle{120'000};
constexpr Duration kForever{std::chrono::hours(24 * 365)};

// "repo:5000/name:tag" → {"repo:5000/name", "tag"}; a digest counts as the tag.
std::pair<std::string, std::string> split_reference(const std::string& name) {
  if (const size_t at = name.find('@'); at != std::string::npos)
    return {name.substr(0, at), name.substr(at + 1)};
  const size_t colon = name.rfind(':');
  const size_t slash = name.rfind('/');
  if (colon == std::string::npos || (slash != std::string::npos && colon < slash))
    return {name, "latest"};
  return {name.substr(0, colon), name.substr(colon + 1)};
}

void add_changes(Query& query, const ImageChanges& changes) {
  for (const std::string& line : change_lines(changes)) query.emplace_back("changes", line);
}

// A stream of progress lines ends well without an "error" in it. Returns the last status.
std::string read_progress(http::BodyReader& reader, Duration idle, const std::stop_token& stop) {
  std::string last;
  read_json_lines(reader, idle, stop, [&](const json::Value& v) {
    if (const std::string error = v.get_string("error"); !error.empty()) {
      const bool absent = error.find("not found") != std::string::npos ||
                          error.find("does not exist") != std::string::npos;
      throw Error(absent ? Code::not_found : Code::internal, log::clip(error, 300));
    }
    if (const std::string status = v.get_string("status"); !status.empty()) last = status;
    return true;
  });
  return last;
}

}  // namespace

std::optional<Image> DockerEngine::find_image(const std::string& id_or_name) {
  const auto v = inspect("images", id_or_name);
  if (!v) return std::nullopt;
  Image image = image_from_inspect(*v);
  if (!names_image(image, id_or_name)) return std::nullopt;
  return image;
}

std::vector<Image> DockerEngine::list_images(const Labels& labels) {
  std::vector<Image> all;
  const json::Value list = api_->get("/images/json", {{"filters", label_filter(labels)}});
  for (const json::Value& v : list.items()) all.push_back(image_from_list(v));
  return all;
}

std::string DockerEngine::import_image(std::string_view tar, const std::string& name,
                                       const ImageChanges& changes) {
  const auto [repo, tag] = split_reference(name);
  ApiCall call;
  call.method = "POST";
  call.path = "/images/create";
  call.query = {{"fromSrc", "-"}, {"repo", repo}, {"tag", tag}};
  if (!changes.arch.empty()) call.query.emplace_back("platform", "linux/" + changes.arch);
  add_changes(call.query, changes);
  call.body = tar;
  call.content_type = "application/x-tar";
  call.timeout = kImageTimeout;
  try {
    const std::string id = read_progress(*api_->open(call), kImageTimeout, {});
    if (id.starts_with("sha256:")) return id;
    const auto made = find_image(name);  // Podman's last line is something else
    if (!made) throw Error(Code::internal, "the engine did not keep the image");
    return made->id;
  } catch (Error& e) {
    throw e.in("import image \"" + name + "\"");
  }
}

std::string DockerEngine::commit_container(const std::string& container, const std::string& name,
                                           const ImageChanges& changes) {
  const auto [repo, tag] = split_reference(name);
  ApiCall call;
  call.method = "POST";
  call.path = "/commit";
  call.query = {{"container", container}, {"repo", repo}, {"tag", tag}, {"pause", "0"}};
  add_changes(call.query, changes);
  call.body = "{}";
  call.timeout = kImageTimeout;
  try {
    const std::string id = json::parse(api_->send(call).body).get_string("Id");
    return id.starts_with("sha256:") ? id : "sha256:" + id;
  } catch (Error& e) {
    throw e.in("commit container " + container.substr(0, 12));
  }
}

void DockerEngine::pull_image(const std::string& name, std::stop_token stop) {
  const auto [repo, tag] = split_reference(name);
  ApiCall call;
  call.method = "POST";
  call.path = "/images/create";
  call.query = {{"fromImage", repo}, {"tag", tag}};
  call.timeout = kPullIdle;
  try {
    read_progress(*api_->open(call, stop), kPullIdle, stop);
  } catch (Error& e) {
    throw e.in("pull image \"" + name + "\"");
  }
  if (stop.stop_requested())
    throw Error(Code::unavailable, "pull image \"" + name + "\": interrupted");
}

void DockerEngine::remove_image(const std::string& id) {
  ApiCall call;
  call.method = "DELETE";
  call.path = "/images/" + image_path(id);
  call.also_fine = {404};
  call.timeout = kImageTimeout;
  try {
    api_->send(call);
  } catch (Error& e) {
    throw e.in("remove image " + id);
  }
}

void DockerEngine::events(const Labels& labels, std::function<void(const EngineEvent&)> sink,
                          std::stop_token stop) {
  ApiCall call;
  call.path = "/events";
  call.query = {{"filters", R"({"type":["container","image","network"]})"}};
  std::unique_ptr<http::BodyReader> reader;
  try {
    reader = api_->open(call, stop);
    read_json_lines(*reader, kForever, stop, [&](const json::Value& v) {
      const EngineEvent event = event_from(v);
      const bool noise = event.action.starts_with("exec_");
      if (!noise && (event.type == "network" || labels_match(event.attributes, labels)))
        sink(event);
      return true;
    });
  } catch (const Error& e) {
    if (stop.stop_requested()) return;
    throw Error(Code::unavailable, "the engine's event stream broke: " + e.message());
  }
  if (!stop.stop_requested())
    throw Error(Code::unavailable, "the engine's event stream broke: the engine ended it");
}

}  // namespace umpteenth::engine
