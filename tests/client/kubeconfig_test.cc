#include "client/kubeconfig.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/fd.h"

namespace umpteenth::client {
namespace {

const char kText[] = R"(apiVersion: v1
kind: Config
current-context: umpteenth
clusters:
- name: umpteenth
  cluster: {server: "https://127.0.0.1:8080", certificate-authority-data: Q0EgUEVN}
- {name: other, cluster: {server: "https://10.0.0.1:1"}}
users:
- name: admin
  user: {token: secret-token}
contexts:
- name: umpteenth
  context: {cluster: umpteenth, user: admin, namespace: web}
- {name: broken, context: {cluster: absent, user: admin}}
)";

TEST(Kubeconfig, gives_server_authority_token_and_workspace) {
  TempDir folder;
  const std::string file = (folder.path() / "config").string();
  write_file_durably(file, kText, 0600);
  const Connection c = load_connection({file, "", "", "", ""});
  EXPECT_EQ(c.server, "https://127.0.0.1:8080");
  EXPECT_EQ(c.ca_pem, "CA PEM");
  EXPECT_EQ(c.token, "secret-token");
  EXPECT_EQ(c.ns, "web");
  const Connection flagged = load_connection({file, "", "mine", "https://localhost:9", "t"});
  EXPECT_EQ(flagged.ns, "mine");
  EXPECT_EQ(flagged.server, "https://localhost:9");
  EXPECT_EQ(flagged.token, "t");
}

TEST(Kubeconfig, names_what_is_missing) {
  TempDir folder;
  const std::string file = (folder.path() / "config").string();
  write_file_durably(file, kText, 0600);
  const auto refusal = [&](ConnectionFlags flags) -> std::string {
    try {
      load_connection(flags);
    } catch (const Error& e) {
      return e.message();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal({file, "nope", "", "", ""}), file + ": there is no context \"nope\"");
  EXPECT_EQ(refusal({file, "broken", "", "", ""}),
            file + ": the cluster of context \"broken\" names no server");
  EXPECT_NE(refusal({file + ".absent", "", "", "", ""}).find("No such file"), std::string::npos);
}

TEST(Kubeconfig, UMPCONFIG_comes_before_KUBECONFIG) {
  ::setenv("UMPCONFIG", "/mine", 1);
  ::setenv("KUBECONFIG", "/theirs:/more", 1);
  EXPECT_EQ(kubeconfig_path({}), "/mine");
  ::unsetenv("UMPCONFIG");
  EXPECT_EQ(kubeconfig_path({}), "/theirs");
  EXPECT_EQ(kubeconfig_path({"/flag", "", "", "", ""}), "/flag");
  ::unsetenv("KUBECONFIG");
}

}  // namespace
}  // namespace umpteenth::client
