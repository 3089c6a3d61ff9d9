#include "controllers/sandbox_engine/plan.h"

#include <gtest/gtest.h>

#include "apis/kind.h"
#include "apis/schema.h"
#include "apis/yaml.h"

namespace umpteenth::controllers::sandbox_engine {
namespace {

// What the schema lacks is in no documentation, and is dropped when the status comes by the API.
TEST(SandboxEngineStatus, has_only_fields_of_the_schema) {
  const json::Value object = apis::parse_yaml_one(
      "{kind: SandboxEngine, metadata: {name: default, generation: 1}, spec: {type: Docker}}");
  Observed observed;
  observed.info.emplace();
  observed.info->engine = "Docker";
  observed.info->version = "20.10";
  observed.info->api_version = "1.41";
  observed.info->arch = "amd64";
  observed.info->runtimes = {"runc"};
  json::Value status = plan_status(object, observed, Time{});
  EXPECT_EQ(status.get_string("architecture"), "amd64");
  const json::Value& schema = apis::find_kind_by_name("SandboxEngine")->status_schema;
  EXPECT_EQ(apis::prune_unknown(schema, status, "status"), std::vector<std::string>{});
}

}  // namespace
}  // namespace umpteenth::controllers::sandbox_engine
