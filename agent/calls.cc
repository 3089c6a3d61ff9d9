#include "agent/calls.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "apis/schema.h"
#include "base/log.h"
#include "runs/text.h"

namespace umpteenth::agent {
namespace {

constexpr size_t kAtOnce = 8;

const ToolSpec* find_tool(const std::string& name) {
  for (const ToolSpec& spec : tools())
    if (spec.tool.name == name) return &spec;
  return nullptr;
}

std::string tool_names() {
  std::string names;
  for (const ToolSpec& spec : tools()) names += (names.empty() ? "" : ", ") + spec.tool.name;
  return names;
}

// "" where the arguments fit.
std::string wrong_arguments(const ToolSpec& spec, const models::ToolCall& call) {
  if (!call.bad_arguments.empty() || !call.arguments.is_object())
    return "the arguments are not a JSON object: " + log::clip(call.bad_arguments);
  std::vector<Cause> causes;
  apis::validate(spec.tool.input_schema, call.arguments, "", causes);
  std::string text;
  for (const Cause& cause : causes)
    text += (text.empty() ? "" : "; ") + cause.field + ": " + cause.message;
  for (const json::Member& m : call.arguments.members())
    if (!spec.tool.input_schema.get("properties").find(m.key))
      text += (text.empty() ? "" : "; ") + ("unknown argument " + json::quote(log::clip(m.key)));
  return text;
}

ToolResult failed(std::string text) { return {std::move(text), true}; }

ToolResult carry_out_one(const models::ToolCall& call, Workbench& bench, std::stop_token stop) {
  const ToolSpec* spec = find_tool(call.name);
  if (!spec)
    return failed("Unknown tool " + json::quote(log::clip(call.name)) + ", use " + tool_names());
  const std::string wrong = wrong_arguments(*spec, call);
  if (!wrong.empty()) return failed("bad arguments for " + call.name + ": " + wrong);
  try {
    return spec->run(call, bench, stop);
  } catch (const Error& e) {  // the model is told and may try something else
    if (stop.stop_requested()) return failed(call.name + ": stopped");
    if (sandbox_lost(e)) throw;
    if (e.code() == Code::internal) {
      log::error("tool failed", {{"tool", call.name}, {"error", e.message()}});
      return failed(call.name + " failed unexpectedly");
    }
    return failed(call.name + ": " + e.message());
  } catch (const std::exception& e) {  // a fault of ours must not cost the run
    log::error("tool failed", {{"tool", call.name}, {"error", e.what()}});
    return failed(call.name + " failed unexpectedly");
  }
}

class Batch {
 public:
  Batch(const std::vector<models::ToolCall>& calls, Workbench& bench, std::stop_token stop)
      : calls_(calls), bench_(bench), stop_(std::move(stop)), results_(calls.size()) {}

  std::vector<models::Part> run() {
    for (size_t at = 0; at < calls_.size();) {
      size_t end = at;
      while (end < calls_.size() && read_only(calls_[end])) ++end;
      if (end - at > 1)
        parallel(at, end);
      else
        one(at);
      at = std::max(end, at + 1);
    }
    return std::move(results_);
  }

 private:
  static bool read_only(const models::ToolCall& call) {
    const ToolSpec* spec = find_tool(call.name);
    return spec && spec->read_only;
  }

  void one(size_t i) {
    const models::ToolCall& call = calls_[i];
    ToolResult result;
    if (bench_.finished) {
      result = failed("not carried out: the run had finished");
    } else if (stop_.stop_requested()) {
      result = failed("not carried out: the run was stopped");
    } else {
      bench_.run.record("tool.call", json::Value::object({{"id", call.id},
                                                          {"tool", call.name},
                                                          {"arguments", shown_arguments(call)}}));
      const Time began = bench_.clock.now();
      result = carry_out_one(call, bench_, stop_);
      bench_.run.record("tool.result",
                        json::Value::object({{"id", call.id},
                                             {"tool", call.name},
                                             {"isError", result.is_error},
                                             {"durationMs", (bench_.clock.now() - began).count()},
                                             {"text", result.text}}));
    }
    models::Part& part = results_[i];
    part.type = models::Part::Type::tool_result;
    part.result_of = call.id;
    part.text = std::move(result.text);
    part.is_error = result.is_error;
  }

  static json::Value shown_arguments(const models::ToolCall& call) {
    return call.bad_arguments.empty() ? call.arguments : json::Value(call.bad_arguments);
  }

  void parallel(size_t begin, size_t end) {
    std::atomic<size_t> next = begin;
    std::vector<std::exception_ptr> thrown(end - begin);
    const auto work = [&] {
      for (size_t i = next++; i < end; i = next++) try {
          one(i);
        } catch (...) {  // carried to the caller's thread
          thrown[i - begin] = std::current_exception();
        }
    };
    {
      std::vector<std::jthread> workers;
      for (size_t n = 0; n < std::min(kAtOnce, end - begin); ++n) workers.emplace_back(work);
    }
    for (const std::exception_ptr& e : thrown)
      if (e) std::rethrow_exception(e);
  }

  const std::vector<models::ToolCall>& calls_;
  Workbench& bench_;
  std::stop_token stop_;
  std::vector<models::Part> results_;
};

}  // namespace

std::vector<models::Part> carry_out(const std::vector<models::ToolCall>& calls, Workbench& bench,
                                    std::stop_token stop) {
  return Batch(calls, bench, std::move(stop)).run();
}

}  // namespace umpteenth::agent
