#include "agent/tools.h"

namespace umpteenth::agent {

const std::vector<ToolSpec>& tools() {
  static const std::vector<ToolSpec> all{bash_tool(),      edit_file_tool(), finish_tool(),
                                         read_file_tool(), remember_tool(),  state_get_tool(),
                                         state_set_tool(), write_file_tool()};
  return all;
}

std::vector<models::Tool> offered_tools() {
  std::vector<models::Tool> offered;
  for (const ToolSpec& spec : tools()) offered.push_back(spec.tool);
  return offered;
}

json::Value arguments_schema(json::Value properties, const std::vector<std::string>& required) {
  return json::Value::object({{"type", "object"},
                              {"properties", std::move(properties)},
                              {"required", json::Value::strings(required)},
                              {"additionalProperties", false}});
}

bool sandbox_lost(const Error& error) {
  if (error.code() == Code::unavailable) return true;
  return error.code() == Code::not_found &&
         error.message().find("sandbox is gone") != std::string::npos;
}

}  // namespace umpteenth::agent
