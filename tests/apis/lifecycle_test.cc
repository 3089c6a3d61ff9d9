#include <gtest/gtest.h>

#include "apis/job.h"
#include "apis/lifecycle.h"
#include "apis/object.h"
#include "apis/yaml.h"

namespace umpteenth::apis {
namespace {

TEST(Create, fills_in_defaults_and_metadata) {
  const json::Value job = parse_yaml_one(R"(
apiVersion: umpteenth.dev/v1alpha1
kind: Job
metadata: {name: hello, namespace: default}
spec: {instruction: hi}
)");
  WriteOptions options;
  options.make_uid = [] { return "00000000-0000-4000-8000-000000000001"; };
  const Admitted made = prepare_create(job_kind(), job, options);
  EXPECT_EQ(generation_of(made.object), 1);
  const JobSpec spec = job_spec_from(made.object.get("spec"));
  EXPECT_EQ(spec.limits.timeout_seconds, 900);
  EXPECT_EQ(job_spec_from(to_json(spec)), spec);
}

}  // namespace
}  // namespace umpteenth::apis
