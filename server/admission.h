// What stands between a client's document and the store, on every path, dry runs included.
#pragma once

#include <string>

#include "server/call.h"

namespace umpteenth::server {

struct WriteQuery {
  apis::WriteOptions options;
  bool dry_run = false;
  bool force = false;  // of an apply
};
// dryRun, fieldManager, fieldValidation, force. Error(invalid) names the parameter.
WriteQuery read_write_query(const Call& call);
bool read_dry_run(const std::vector<std::string>& values);  // Error(invalid) but for "All"

// apiVersion, kind, name and namespace of a whole document fit the path; the namespace is filled
// in. Error(bad_request).
void fit_to_path(const Call& call, json::Value& object);

// The workspace exists and is not being deleted. Error(not_found), Error(forbidden).
void require_workspace(Env& env, const Call& call);

// Seals a Secret's values; nothing for other kinds. old: null on create. What it throws never
// quotes a given value.
void seal_values(Env& env, const Call& call, json::Value& object, const json::Value* old);
// A merge patch that removes stringData keys means the sealed ones: they have no other name.
void forget_sealed_values(const json::Value& patch, json::Value& object);
// The same promise for errors thrown later: given values in messages become `***`.
Error without_values(const Error& error, const json::Value& given);

}  // namespace umpteenth::server
