// FakeEngine: containers, their files, and images.
#include <algorithm>

#include "engine/tar.h"
#include "tests/support/fake_engine_state.h"
#include "tests/support/fake_exec.h"

namespace umpteenth::support {

using engine::Labels;

namespace {

std::string joined(const std::string& folder, const std::string& name) {
  std::string path = folder == "/" ? "" : folder;
  if (!name.empty()) path += "/" + name;
  return path.empty() ? "/" : path;
}

void unpack(std::string_view tar, const std::string& folder, FakeFiles& into) {
  engine::read_tar(tar, {}, [&](const engine::TarEntry& e) {
    into[joined(folder, e.name)] = {std::string(e.data), e.mode, e.uid, e.gid,
                                    e.type == engine::TarEntry::Type::directory};
  });
}

}  // namespace

FakeEngine::FakeContainer& FakeEngine::container(const std::string& id_or_name) {
  for (const auto& [id, c] : containers_)
    if (id == id_or_name || c->seen.name == id_or_name) return *c;
  throw Error(Code::not_found, "no such container: " + id_or_name);
}

std::string FakeEngine::create_container(const engine::ContainerSpec& spec) {
  const Lock lock = enter("create_container", spec.name);
  for (const auto& [id, c] : containers_)
    if (c->seen.name == spec.name)
      throw Error(Code::conflict, "create container \"" + spec.name + "\": the name is in use");
  const FakeImage& from = image(spec.image);
  auto c = std::make_unique<FakeContainer>();
  c->spec = spec;
  c->files = from.files;
  c->seen.id = new_id();
  c->seen.name = spec.name;
  c->seen.hostname = spec.hostname.empty() ? c->seen.id.substr(0, 12) : spec.hostname;
  c->seen.image_id = from.seen.id;
  c->seen.image = spec.image;
  c->seen.labels = from.seen.labels;
  for (const auto& [k, v] : spec.labels) c->seen.labels[k] = v;
  c->seen.state = "created";
  c->seen.created_at = "2026-01-01T00:00:" + std::to_string(10 + ticks_++ % 50) + "Z";
  const std::string id = c->seen.id;
  FakeContainer& kept = *(containers_[id] = std::move(c));
  try {
    if (spec.networks.empty() && !spec.network_mode.empty() && spec.network_mode != "none" &&
        spec.network_mode != "host" && spec.network_mode != "bridge")
      attach(network(spec.network_mode), kept, {spec.network_mode, "", {}});
    for (const auto& how : spec.networks) attach(network(how.network), kept, how);
  } catch (...) {  // as the engine does: a container that cannot be attached is not kept
    for (auto& [network_id, address] : kept.attached) networks_.at(network_id).members.erase(id);
    containers_.erase(id);
    throw;
  }
  emit("container", "create", id, kept.seen.labels);
  return id;
}

void FakeEngine::start_container(const std::string& id) {
  const Lock lock = enter("start_container", id);
  FakeContainer& c = container(id);
  if (c.seen.state == "running") return;
  c.seen.state = "running";
  c.seen.pid = 1'000 + next_++;
  c.seen.started_at = "2026-01-01T00:01:" + std::to_string(10 + ticks_++ % 50) + "Z";
  for (const auto& [network_id, address] : c.attached) refresh_members(networks_.at(network_id));
  emit("container", "start", c.seen.id, c.seen.labels);
}

void FakeEngine::set_pid(const std::string& id_or_name, int64_t pid) {
  const Lock lock(mutex_);
  container(id_or_name).seen.pid = pid;
}

void FakeEngine::end(FakeContainer& c, int exit_code, bool oom) {
  if (c.seen.state != "running") return;
  c.seen.state = "exited";
  c.seen.pid = 0;
  c.seen.exit_code = exit_code;
  c.seen.oom_killed = oom;
  for (const auto& [network_id, address] : c.attached) refresh_members(networks_.at(network_id));
  for (const auto& p : processes_) {
    std::scoped_lock lock(p->mutex);
    if (p->container != c.seen.id || p->exit_code) continue;
    p->container_gone = true;
    p->changed.notify_all();
  }
  if (oom) emit("container", "oom", c.seen.id, c.seen.labels);
  emit("container", "die", c.seen.id, c.seen.labels);
}

void FakeEngine::stop_container(const std::string& id, Duration) {
  const Lock lock = enter("stop_container", id);
  end(container(id), 0, false);
}

void FakeEngine::remove_container(const std::string& id_or_name) {
  const Lock lock = enter("remove_container", id_or_name);
  std::string id;
  for (const auto& [known, c] : containers_)
    if (known == id_or_name || c->seen.name == id_or_name) id = known;
  if (id.empty()) return;
  FakeContainer& c = *containers_[id];
  end(c, 137, false);
  for (const auto& [network_id, address] : c.attached) networks_.at(network_id).members.erase(id);
  const Labels labels = c.seen.labels;
  containers_.erase(id);
  emit("container", "destroy", id, labels);
}

std::optional<engine::Container> FakeEngine::find_container(const std::string& id_or_name) {
  const Lock lock = enter("find_container", id_or_name);
  for (const auto& [id, c] : containers_)
    if (id == id_or_name || c->seen.name == id_or_name) return c->seen;
  return std::nullopt;
}

std::vector<engine::Container> FakeEngine::list_containers(const Labels& labels) {
  const Lock lock = enter("list_containers", "");
  std::vector<engine::Container> found;
  for (const auto& [id, c] : containers_)
    if (labels_match(c->seen.labels, labels)) found.push_back(c->seen);
  return found;
}

int64_t FakeEngine::container_disk_bytes(const std::string& id) {
  const Lock lock = enter("container_disk_bytes", id);
  int64_t bytes = 0;
  for (const auto& [path, file] : container(id).files)
    bytes += static_cast<int64_t>(file.data.size());
  return bytes;
}

std::string FakeEngine::container_logs(const std::string& id, size_t max_bytes) {
  const Lock lock = enter("container_logs", id);
  return ("log of " + container(id).seen.name + "\n").substr(0, max_bytes);
}

void FakeEngine::put_archive(const std::string& id, const std::string& path, std::string_view tar) {
  const Lock lock = enter("put_archive", id + " " + path);
  unpack(tar, path, container(id).files);
}

std::string FakeEngine::get_archive(const std::string& id, const std::string& path,
                                    size_t max_bytes) {
  const Lock lock = enter("get_archive", id + " " + path);
  const size_t slash = path.rfind('/');
  const std::string base = path.substr(slash + 1);
  engine::TarWriter writer;
  bool found = false;
  for (const auto& [name, file] : container(id).files) {
    if (name != path && !name.starts_with(path + "/")) continue;
    found = true;
    const std::string relative = base + name.substr(path.size());
    if (file.directory)
      writer.add_directory(relative, file.mode, file.uid, file.gid);
    else
      writer.add_file(relative, file.data, file.mode, file.uid, file.gid);
  }
  if (!found) throw Error(Code::not_found, "no such path in the container: " + path);
  std::string tar = writer.finish();
  if (tar.size() > max_bytes)
    throw Error(Code::too_large, "copy " + path + " out of the container: more than " +
                                     std::to_string(max_bytes) + " bytes");
  return tar;
}

FakeEngine::FakeImage& FakeEngine::image(const std::string& id_or_name) {
  for (const auto& [id, i] : images_) {
    const auto& tags = i->seen.tags;
    for (const std::string& name : {id_or_name, id_or_name + ":latest"})
      if (id == name || std::find(tags.begin(), tags.end(), name) != tags.end()) return *i;
  }
  throw Error(Code::not_found, "no such image: " + id_or_name);
}

std::string FakeEngine::store_image(engine::Image seen, FakeFiles files, const std::string& name) {
  if (seen.id.empty()) seen.id = "sha256:" + new_id();
  const std::string tag = name.find(':') == std::string::npos ? name + ":latest" : name;
  for (auto& [id, other] : images_)
    other->seen.tags.erase(std::remove(other->seen.tags.begin(), other->seen.tags.end(), tag),
                           other->seen.tags.end());
  if (!name.empty()) seen.tags = {tag};
  auto stored = std::make_unique<FakeImage>();
  stored->seen = seen;
  stored->files = std::move(files);
  images_[seen.id] = std::move(stored);
  return seen.id;
}

void FakeEngine::add_image(engine::Image seen, FakeFiles files) {
  std::scoped_lock lock(mutex_);
  const std::string name = seen.tags.empty() ? "" : seen.tags.front();
  store_image(std::move(seen), std::move(files), name);
}

std::string FakeEngine::add_image(const std::string& name, const std::string& arch) {
  std::scoped_lock lock(mutex_);
  engine::Image seen;
  seen.arch = arch;
  seen.os = "linux";
  return store_image(seen, {}, name);
}

std::optional<engine::Image> FakeEngine::find_image(const std::string& id_or_name) {
  const Lock lock = enter("find_image", id_or_name);
  try {
    return image(id_or_name).seen;
  } catch (const Error&) {  // image() throws not_found only
    return std::nullopt;
  }
}

std::vector<engine::Image> FakeEngine::list_images(const Labels& labels) {
  const Lock lock = enter("list_images", "");
  std::vector<engine::Image> found;
  for (const auto& [id, i] : images_)
    if (labels_match(i->seen.labels, labels)) found.push_back(i->seen);
  return found;
}

std::string FakeEngine::import_image(std::string_view tar, const std::string& name,
                                     const engine::ImageChanges& changes) {
  const Lock lock = enter("import_image", name);
  FakeFiles files;
  unpack(tar, "/", files);
  engine::Image seen;
  seen.labels = changes.labels;
  seen.arch = changes.arch.empty() ? "amd64" : changes.arch;
  seen.os = "linux";
  seen.user = changes.user;
  seen.entrypoint = changes.entrypoint;
  seen.cmd = changes.cmd;
  seen.env = changes.env;
  return store_image(seen, std::move(files), name);
}

std::string FakeEngine::commit_container(const std::string& id, const std::string& name,
                                         const engine::ImageChanges& changes) {
  const Lock lock = enter("commit_container", name);
  const FakeContainer& c = container(id);
  engine::Image seen = image(c.seen.image_id).seen;
  seen.id.clear();
  seen.tags.clear();
  seen.has_healthcheck = seen.has_healthcheck && !c.spec.disable_healthcheck;
  for (const auto& [k, v] : c.spec.labels) seen.labels[k] = v;
  for (const auto& [k, v] : changes.labels) seen.labels[k] = v;
  if (!c.spec.entrypoint.empty()) seen.entrypoint = c.spec.entrypoint;
  if (!changes.entrypoint.empty()) seen.entrypoint = changes.entrypoint;
  if (!changes.user.empty()) seen.user = changes.user;
  seen.cmd = changes.cmd;
  return store_image(seen, c.files, name);
}

void FakeEngine::pull_image(const std::string& name, std::stop_token) {
  const Lock lock = enter("pull_image", name);
  throw Error(Code::not_found, "pull image \"" + name + "\": no registry knows it");
}

void FakeEngine::remove_image(const std::string& id) {
  const Lock lock = enter("remove_image", id);
  for (const auto& [known, c] : containers_)
    if (c->seen.image_id == id)
      throw Error(Code::conflict, "remove image " + id + ": a container uses it");
  images_.erase(id);
}

}  // namespace umpteenth::support
