#include "engine/sandbox_images.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/names.h"
#include "engine/tar.h"

namespace umpteenth::engine {
namespace {

// Counts up when the layout below changes, so that images of older ones are made anew.
constexpr char kLayout[] = "2";
constexpr size_t kMaxProgram = 16U << 20;
constexpr int kAgent = 1000;

std::string layout_tar() {
  TarWriter w;
  w.add_directory("workspace", 0755, kAgent, kAgent);
  w.add_directory("ump", 0755, kAgent, kAgent);
  w.add_directory("ump/outputs", 0755, kAgent, kAgent);
  w.add_directory("ump/logs", 0755, kAgent, kAgent);
  w.add_directory("run/ump", 01777);
  return w.finish();
}

// Where there is no proxy to go through, ssh goes its own way. Read by the distributions' ssh
// configuration; an image without ssh has no such folder and needs none. `test` without a word is
// false, and quotes within quotes are for newer versions of ssh only.
constexpr char kSshConfig[] =
    "Match !host localhost,127.0.0.1 exec \"test $ALL_PROXY\"\n"
    "  ProxyCommand /usr/local/bin/ump connect %h %p\n";

void put_ssh_config(Engine& engine, const std::string& container) {
  TarWriter w;
  w.add_file("ump.conf", kSshConfig, 0644);
  try {
    engine.put_archive(container, "/etc/ssh/ssh_config.d", w.finish());
  } catch (const Error& e) {
    if (e.code() != Code::not_found) throw;
  }
}

// The folder is named only where the base has none: an entry for it would replace a link there.
void put_program(Engine& engine, const std::string& container, const std::string& bytes) {
  TarWriter alone;
  alone.add_file("ump", bytes, 0755);
  try {
    engine.put_archive(container, "/usr/local/bin", alone.finish());
    return;
  } catch (const Error& e) {
    if (e.code() != Code::not_found) throw;
  }
  TarWriter with_folder;
  for (const char* folder : {"usr", "usr/local", "usr/local/bin"})
    with_folder.add_directory(folder);
  with_folder.add_file("usr/local/bin/ump", bytes, 0755);
  engine.put_archive(container, "/", with_folder.finish());
}

std::string label(const Image& image, const char* key) {
  const auto it = image.labels.find(key);
  return it == image.labels.end() ? "" : it->second;
}

}  // namespace

SandboxImages::SandboxImages(Engine& engine, std::string instance,
                             std::map<std::string, std::filesystem::path> ump_by_arch)
    : engine_(engine), instance_(std::move(instance)), ump_by_arch_(std::move(ump_by_arch)) {}

const SandboxImages::Program& SandboxImages::program_for(const std::string& arch,
                                                         const std::string& image) {
  if (const auto it = programs_.find(arch); it != programs_.end()) return it->second;
  if (arch != "amd64" && arch != "arm64")
    throw Error(Code::invalid, "image \"" + image + "\" is for " + log::clip(arch, 20) +
                                   ": sandboxes need amd64 or arm64");
  const auto path = ump_by_arch_.find(arch);
  if (path == ump_by_arch_.end() || !std::filesystem::exists(path->second))
    throw Error(Code::invalid,
                "image \"" + image + "\" is for " + arch +
                    ": this installation has no ump for it (./dev build makes both)");
  Program program;
  program.bytes = read_file(path->second, kMaxProgram);
  program.sha256 = crypto::hex(crypto::sha256(program.bytes));
  return programs_[arch] = std::move(program);
}

Image SandboxImages::ensure_base(const std::string& name, std::stop_token stop) {
  if (auto image = engine_.find_image(name)) return *image;
  engine_.pull_image(name, std::move(stop));
  if (auto image = engine_.find_image(name)) return *image;
  throw Error(Code::not_found, "image \"" + name + "\" is not on the engine after its pull");
}

std::string SandboxImages::ensure_prepared(const std::string& base_name) {
  const auto base = engine_.find_image(base_name);
  if (!base) throw Error(Code::not_found, "image \"" + base_name + "\" is not on the engine");
  const std::scoped_lock lock(mutex_);
  const Program& program = program_for(base->arch, base_name);
  const std::string name =
      "umpteenth-prepared:" +
      short_hash(instance_ + "\n" + base->id + "\n" + program.sha256 + "\n" + kLayout, 24);
  if (const auto found = engine_.find_image(name); found &&
                                                   label(*found, kLabelBaseId) == base->id &&
                                                   label(*found, kLabelUmp) == program.sha256)
    return found->id;
  try {
    return prepare(*base, base_name, program, name);
  } catch (Error& e) {
    throw e.in("prepare image \"" + base_name + "\"");
  }
}

std::string SandboxImages::prepare(const Image& base, const std::string& base_name,
                                   const Program& program, const std::string& name) {
  const Labels labels = {{kLabelInstance, instance_},
                         {kLabelRole, "prepared"},
                         {kLabelBaseId, base.id},
                         {kLabelBaseName, base_name},
                         {kLabelUmp, program.sha256}};
  ContainerSpec spec;  // never started
  spec.name = own_name(instance_, "prepare-" + name.substr(name.find(':') + 1));
  spec.image = base.id;
  spec.entrypoint = {kUmpPath, "init"};
  spec.user = "0:0";
  spec.working_dir = "/workspace";
  spec.labels = labels;
  spec.cap_drop = {"ALL"};
  spec.network_mode = "none";
  engine_.remove_container(spec.name);  // of an umpd that was killed while preparing
  const std::string container = engine_.create_container(spec);
  const Defer remove([&] {
    try {
      engine_.remove_container(container);
    } catch (const Error& e) {  // removed before the next preparation
      log::warn("a preparation's container is left", {{"name", spec.name}, {"error", e.message()}});
    }
  });
  put_program(engine_, container, program.bytes);
  engine_.put_archive(container, "/", layout_tar());
  put_ssh_config(engine_, container);
  ImageChanges changes;
  changes.labels = labels;
  changes.entrypoint = spec.entrypoint;
  changes.user = spec.user;
  changes.working_dir = spec.working_dir;
  const std::string id = engine_.commit_container(container, name, changes);
  log::info("image prepared", {{"base", base_name}, {"image", id}});
  return id;
}

std::string SandboxImages::ensure_helper() {
  const std::string arch = engine_.info().arch;
  const std::scoped_lock lock(mutex_);
  const Program& program = program_for(arch, "umpteenth-helper");
  const std::string name = "umpteenth-helper:" + short_hash(instance_ + "\n" + program.sha256, 24);
  if (const auto found = engine_.find_image(name);
      found && label(*found, kLabelUmp) == program.sha256)
    return found->id;
  TarWriter w;
  w.add_file("ump", program.bytes, 0755);
  ImageChanges changes;
  changes.labels = {
      {kLabelInstance, instance_}, {kLabelRole, "helper"}, {kLabelUmp, program.sha256}};
  changes.entrypoint = {kHelperUmpPath};
  changes.arch = arch;
  return engine_.import_image(w.finish(), name, changes);
}

// Current is what ensure_… would return today.
bool SandboxImages::outdated(const Image& listed) {
  const auto image = engine_.find_image(listed.id);  // lists have no architecture
  if (!image) return false;
  const std::scoped_lock lock(mutex_);
  const auto path = ump_by_arch_.find(image->arch);
  if (path == ump_by_arch_.end()) return true;
  if (label(*image, kLabelUmp) != program_for(image->arch, "umpteenth-helper").sha256) return true;
  if (label(*image, kLabelRole) != "prepared") return false;
  const auto base = engine_.find_image(label(*image, kLabelBaseName));
  return !base || base->id != label(*image, kLabelBaseId);
}

size_t SandboxImages::collect_garbage() {
  size_t removed = 0;
  for (const char* role : {"prepared", "helper"})
    for (const Image& image :
         engine_.list_images({{kLabelInstance, instance_}, {kLabelRole, role}})) {
      if (!outdated(image)) continue;
      try {
        engine_.remove_image(image.id);
        ++removed;
      } catch (const Error& e) {
        if (e.code() != Code::conflict) throw;  // a container still uses it
      }
    }
  return removed;
}

}  // namespace umpteenth::engine
