#include "controllers/sandbox_engine/engines.h"

namespace umpteenth::controllers {
namespace {

constexpr char kDefault[] = "default";

bool same_engine(const apis::SandboxEngineSpec& a, const apis::SandboxEngineSpec& b) {
  return a.type == b.type && a.endpoint == b.endpoint && a.subnet_pool == b.subnet_pool;
}

}  // namespace

std::shared_ptr<EngineHandle> Engines::ensure(const std::string& name,
                                              const apis::SandboxEngineSpec& spec) {
  std::lock_guard lock(mutex_);
  auto& handle = handles_[name];
  if (handle && handle->spec() == spec) return handle;
  auto parts = handle && same_engine(handle->spec(), spec) ? handle->parts() : make_(spec);
  handle = std::make_shared<EngineHandle>(name, spec, std::move(parts));
  return handle;
}

void Engines::remove(const std::string& name) {
  std::lock_guard lock(mutex_);
  handles_.erase(name);
}

std::shared_ptr<EngineHandle> Engines::find(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto found = handles_.find(name.empty() ? kDefault : name);
  return found == handles_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<EngineHandle>> Engines::all() const {
  std::vector<std::shared_ptr<EngineHandle>> handles;
  std::lock_guard lock(mutex_);
  for (const auto& [name, handle] : handles_) handles.push_back(handle);
  return handles;
}

}  // namespace umpteenth::controllers
