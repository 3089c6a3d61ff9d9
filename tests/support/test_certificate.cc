#include "tests/support/test_certificate.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/subprocess.h"

namespace umpteenth::test {

http::TlsFiles a_certificate() {
  const TempDir dir;
  const std::string key = dir.path() / "key.pem";
  const std::string cert = dir.path() / "cert.pem";
  Command command;
  command.argv = {"openssl",
                  "req",
                  "-x509",
                  "-newkey",
                  "ec",
                  "-pkeyopt",
                  "ec_paramgen_curve:prime256v1",
                  "-nodes",
                  "-days",
                  "2",
                  "-subj",
                  "/CN=localhost",
                  "-addext",
                  "subjectAltName=DNS:localhost,IP:127.0.0.1",
                  "-keyout",
                  key,
                  "-out",
                  cert};
  const CommandResult made = system_runner().run(command);
  if (made.exit_code != 0) throw Error(Code::internal, "make a certificate: " + made.err);
  return {read_file(cert), read_file(key)};
}

}  // namespace umpteenth::test
