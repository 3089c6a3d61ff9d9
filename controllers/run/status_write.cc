#include "controllers/run/status_write.h"

#include <string>

#include "apis/object.h"
#include "base/error.h"
#include "controllers/runtime/write.h"

namespace umpteenth::controllers::run {
namespace {
constexpr int kAttempts = 50;
}

store::RecordPtr advance(store::Store& store, RunIndex& index, const store::Key& key,
                         apis::Phase to, const std::function<void(apis::RunStatus&)>& change) {
  for (int attempt = 1;; ++attempt) {
    auto record = store.find(key);
    if (!record) return nullptr;
    json::Value run = record->parse();
    apis::RunStatus status = apis::run_status_from(run.get("status"));
    bool ahead = status.phase == to ? !apis::terminal(to) : apis::may_follow(status.phase, to);
    if (!ahead) return nullptr;
    status.phase = to;
    change(status);
    json::Value written = run.get("status");
    if (!written.is_object()) written = json::Value::object();
    const json::Value fields = apis::to_json(status);
    for (const auto& [field, value] : fields.members()) written.set(field, value);
    run.set("status", std::move(written));
    try {
      auto stored = write_object(store, *record, std::move(run), kRunActor,
                                 "run " + key.name + " is " + std::string(apis::to_string(to)));
      index.committed(stored);
      return stored;
    } catch (const Error& e) {  // somebody wrote meanwhile, e.g. asked for cancellation: read again
      bool again = e.code() == Code::conflict || e.code() == Code::not_found;
      if (!again || attempt == kAttempts) throw;
    }
  }
}

std::string with_canceller(const std::string& message, const store::RecordPtr& run) {
  const std::string who = run ? apis::annotation_of(run->parse(), apis::kCancelledBy) : "";
  return who.empty() ? message : message + " (by " + who + ")";
}

}  // namespace umpteenth::controllers::run
