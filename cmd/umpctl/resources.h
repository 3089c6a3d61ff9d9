// What a command works on: names on the line, or manifests from files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apis/kind.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/umpctl/command.h"

namespace umpteenth::umpctl {

struct Target {
  const apis::Kind* kind;
  std::string ns;    // "" for cluster kinds
  std::string name;  // "" = all of the kind
};

// TYPE, TYPE NAME…, TYPE/NAME…, TYPE,TYPE. Error(bad_request) names the kinds where the word is
// none.
std::vector<Target> targets(Invocation& line, size_t from = 0);
Target one_target(Invocation& line);  // exactly one name
const apis::Kind& kind_of_word(const std::string& word);

struct Manifest {
  json::Value object;
  const apis::Kind* kind;
  std::string ns, name;
  std::string source;  // file and the line where it begins, for messages

  struct Place {  // what tells the line of a field
    std::string file;
    std::shared_ptr<const std::string> text;
    size_t document = 0;
    std::string prefix = {};  // items[2]. in a list
  } place;
};

// -f FILE|DIR|-, -R. Lists are unfolded; documents that are empty are passed over. Only what makes
// objects may take one that has generateName in place of a name: everywhere else no name would mean
// the whole collection.
enum class Names { required, may_be_generated };
std::vector<Manifest> manifests(Invocation& line, Names names = Names::required);

// Why the manifest was refused, a line each: `FILE:LINE: spec.schedule.cron: Invalid value: …` for
// what the server says of a field, else `FILE:LINE: job.umpteenth.dev/NAME: …`.
std::string failure_text(const Manifest& m, const Error& error);

extern const Flag kFileFlag, kRecursiveFlag, kSelectorFlag, kFieldSelectorFlag, kAllNamespacesFlag,
    kOutputFlag, kDryRunFlag;

// As whom a command writes, how unknown fields are taken, and what --dry-run means.
client::Params write_params(Invocation& line, const std::string& manager);
bool is_dry_run(Invocation& line);  // of either mode: what is sent is tried out on the server

}  // namespace umpteenth::umpctl
