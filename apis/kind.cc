#include "apis/kind.h"

#include <algorithm>

#include "apis/job.h"
#include "apis/model_provider.h"
#include "apis/run.h"
#include "apis/sandbox_engine.h"
#include "apis/secret.h"
#include "apis/serve.h"
#include "apis/workspace.h"

namespace umpteenth::apis {

const std::vector<const Kind*>& kinds() {
  static const std::vector<const Kind*> all = {
      &job_kind(),           &run_kind(), &secret_kind(), &workspace_kind(), &model_provider_kind(),
      &sandbox_engine_kind()};
  return all;
}

const Kind* find_kind(std::string_view plural) {
  for (const Kind* k : kinds())
    if (k->plural == plural) return k;
  return nullptr;
}

const Kind* find_stored_kind(std::string_view plural) {
  if (plural == event_kind().plural) return &event_kind();
  return find_kind(plural);
}

const Kind* find_kind_by_name(std::string_view kind) {
  for (const Kind* k : kinds())
    if (k->kind == kind) return k;
  return nullptr;
}

const Kind* resolve_kind(std::string_view word) {
  const size_t dot = word.find('.');
  if (dot != std::string_view::npos) {
    const std::string_view rest = word.substr(dot + 1);
    if (rest != kGroup && rest != std::string(kVersion) + "." + kGroup) return nullptr;
    word = word.substr(0, dot);
  }
  std::string lower(word);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const Kind* k : kinds())
    if (k->plural == lower || k->singular == lower ||
        std::find(k->short_names.begin(), k->short_names.end(), lower) != k->short_names.end())
      return k;
  return nullptr;
}

}  // namespace umpteenth::apis
