// JSON on RapidJSON, read as a stream: nothing here recurses, whatever the depth.
#pragma once

#include <stddef.h>

#include "ump/buffer.h"

namespace umpteenth::ump {

bool is_json(const char* text, size_t n);         // strict, UTF-8, one value
bool is_json_object(const char* text, size_t n);  // and it is an object
bool is_utf8(const char* text, size_t n);

// "text" as a string literal. False where it is not UTF-8.
bool append_json_string(Buffer* out, const char* text, size_t n);

// A member of the outermost object: a string's text, anything else as it stands, indented by two
// when `indent`. False where it is absent, null or this is no JSON.
bool json_member(const char* text, size_t n, const char* key, bool indent, Buffer* out);

// Calls with each member of an object of strings; false where it is something else, a text holds a
// NUL, or the call said no.
bool json_each_string(const char* text, size_t n, bool (*call)(const char* key, const char* value));

}  // namespace umpteenth::ump
