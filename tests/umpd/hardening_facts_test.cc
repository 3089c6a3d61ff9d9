#include "cmd/umpd/hardening_facts.h"

#include <gtest/gtest.h>

#include "base/fd.h"

namespace umpteenth::umpd {
namespace {

TEST(HardeningFacts, names_the_files_that_hold_keys_with_their_modes_of_now) {
  TempDir folder;
  const auto config_file = folder.path() / "config.yml";
  write_file_durably(config_file, "", 0644);
  write_file_durably(folder.path() / "encryption.key", "k", 0600);
  Config config;
  config.file = config_file.string();
  using File = server::HardeningFacts::File;
  EXPECT_EQ(hardening_facts(config, folder.path()).secret_files,
            (std::vector<File>{{config_file.string(), 0644},
                               {(folder.path() / "encryption.key").string(), 0600}}));
  std::filesystem::permissions(config_file, std::filesystem::perms(0600));
  EXPECT_EQ(hardening_facts(config, folder.path()).secret_files[0].mode, 0600U);
}

TEST(HardeningFacts, are_the_options) {
  Config config;
  config.app.url = "https://a";
  config.server.host = "0.0.0.0";
  config.server.tls_mode = "off";
  config.network.allow_private_targets = false;
  const server::HardeningFacts facts = hardening_facts(config, "/nonexistent");
  EXPECT_EQ(facts.app_url, "https://a");
  EXPECT_EQ(facts.api_host, "0.0.0.0");
  EXPECT_FALSE(facts.tls);
  EXPECT_FALSE(facts.allow_private_targets);
  EXPECT_TRUE(facts.secret_files.empty());
}

}  // namespace
}  // namespace umpteenth::umpd
