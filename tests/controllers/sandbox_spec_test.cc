#include "controllers/run/sandbox_spec.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace umpteenth::controllers::run {
namespace {

bool has(const std::vector<std::string>& env, const std::string& entry) {
  return std::ranges::find(env, entry) != env.end();
}

TEST(CommandEnv, names_the_proxy_only_where_there_is_a_list) {
  const auto env = command_env("tok", "uid", apis::NetworkMode::allowed_domains, {});
  for (const char* name : {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"})
    EXPECT_TRUE(has(env, std::string(name) + "=http://ump:tok@umpteenth:8081")) << name;
  for (const char* name : {"ALL_PROXY", "all_proxy"})
    EXPECT_TRUE(has(env, std::string(name) + "=socks5h://ump:tok@umpteenth:8081")) << name;
  for (const char* name : {"NO_PROXY", "no_proxy"})
    EXPECT_TRUE(has(env, std::string(name) + "=umpteenth,localhost,127.0.0.1")) << name;
  EXPECT_TRUE(has(env, "NODE_USE_ENV_PROXY=1"));
  EXPECT_TRUE(has(env, "UMP_TOKEN=tok"));
  for (const auto mode : {apis::NetworkMode::internet, apis::NetworkMode::none})
    EXPECT_EQ(command_env("tok", "uid", mode, {}),
              (std::vector<std::string>{"UMP_BROKER_URL=http://umpteenth:8081", "UMP_TOKEN=tok",
                                        "UMP_RUN_ID=uid"}));
}

TEST(CommandEnv, secrets_cannot_take_reserved_names) {
  const std::vector<EnvVar> secrets{{"B", "2"},
                                    {"A", "1"},
                                    {"UMP_TOKEN", "x"},
                                    {"ump_anything", "x"},
                                    {"https_proxy", "x"},
                                    {"Node_Use_Env_Proxy", "x"},
                                    {"", "x"},
                                    {"C=D", "x"}};
  const auto env = command_env("tok", "uid", apis::NetworkMode::none, secrets);
  ASSERT_EQ(env.size(), 5U);
  EXPECT_EQ(env[0], "A=1");
  EXPECT_EQ(env[1], "B=2");
  EXPECT_EQ(command_env("tok", "uid", apis::NetworkMode::none, {}, 9000).front(),
            "UMP_BROKER_URL=http://umpteenth:9000");
}

}  // namespace
}  // namespace umpteenth::controllers::run
