#include "cmd/umpctl/seal.h"

#include <iostream>

#include "apis/object.h"
#include "apis/seal.h"
#include "apis/yaml.h"
#include "base/error.h"
#include "base/fd.h"
#include "cmd/umpctl/command.h"
#include "cmd/umpctl/resources.h"

namespace umpteenth::umpctl {
namespace {

constexpr char kKeyPath[] = "/umpteenth/v1alpha1/sealing-key";

json::Value key_of(Invocation& line) {
  if (!line.given("key")) return json::parse(line.client().send("GET", kKeyPath).body);
  const std::string file = line.get("key");
  try {
    return json::parse(read_file(file, 4096));
  } catch (Error& e) {
    throw e.in("--key " + file);
  }
}

int seal(Invocation& line) {
  const std::vector<Manifest> all = manifests(line);
  const json::Value key = key_of(line);
  std::string text;
  for (const Manifest& m : all) {
    try {
      text += (text.empty() ? "" : "---\n") + apis::to_yaml(sealed(m.object, key));
    } catch (Error& e) {
      throw e.in(m.source);
    }
  }
  std::cout << text;  // all or nothing: a half-sealed file is easily committed
  return kOk;
}

}  // namespace

json::Value sealed(json::Value object, const json::Value& key) {
  if (object.get_string("kind") != "Secret") return object;
  const std::string public_key = key.get_string("publicKey"), instance = key.get_string("instance");
  if (public_key.empty() || instance.empty())
    throw Error(Code::bad_request, std::string("this is no sealing key: it must have instance and "
                                               "publicKey, as GET ") +
                                       kKeyPath + " answers");
  json::Value& spec = object["spec"];
  const json::Value clear = spec.get("stringData");
  if (!clear.is_null() && !clear.is_object())
    throw Error(Code::bad_request, "spec.stringData must be a mapping of strings");
  apis::SealedEntry entry{apis::namespace_of(object), apis::name_of(object), ""};
  if (clear.is_object())
    for (const json::Member& m : clear.members()) {
      if (!m.value.is_string())
        throw Error(Code::bad_request, "spec.stringData." + m.key + " must be a string, it is " +
                                           m.value.type_name() + " (put it in quotes)");
      entry.entry = m.key;
      spec["sealedData"].set(
          m.key, apis::Sealer::seal_offline(public_key, instance, entry, m.value.as_string()));
    }
  spec.erase("stringData");
  return object;
}

void add_seal_command(std::vector<Command>& table) {
  table.push_back(
      {"seal",
       "-f FILE…",
       "Seal the values of secrets, for a repository",
       "umpctl seal -f token.yaml > token-sealed.yaml\n\nPrints the manifests with spec.stringData "
       "sealed into spec.sealedData. Only this umpd opens them, only under\nthe same workspace, "
       "name "
       "and key. Without a connection: --key with what\n'umpctl get --raw "
       "/umpteenth/v1alpha1/sealing-key' printed, and -n WORKSPACE.",
       {kFileFlag, kRecursiveFlag, {"key", 0, "FILE", "the sealing key, instead of asking umpd"}},
       seal});
}

}  // namespace umpteenth::umpctl
