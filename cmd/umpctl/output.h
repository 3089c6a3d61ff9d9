// How objects and tables are printed.
#pragma once

#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "apis/kind.h"
#include "base/json.h"

namespace umpteenth::umpctl {

struct Output {  // of -o
  enum class Form { table, wide, json, yaml, name, jsonpath, custom_columns } form = Form::table;
  std::string argument;
  bool headers = true;  // of custom-columns
};
Output parse_output(const std::string& text);  // Error(bad_request) names the forms

std::string object_name(const apis::Kind& kind,
                        const std::string& name);  // job.umpteenth.dev/hello

// An object or a list in any form but a table.
void print_object(std::ostream& out, const Output& output, const apis::Kind& kind,
                  const json::Value& object);

// Text that others made: as it is, but to a terminal without what a terminal obeys.
void print_text(std::ostream& out, const std::string& text);

// Rows of cells as lines of aligned columns, three spaces between them.
std::string aligned(const std::vector<std::vector<std::string>>& rows, size_t indent = 0);

// Aligned columns, as kubectl prints them. Widths are kept between calls, for watches.
class TablePrinter {
 public:
  struct Options {
    bool wide = false, headers = true, show_namespace = false, show_labels = false,
         show_kind = false;
    std::vector<std::string> label_columns;
    std::string kind_prefix;  // job.umpteenth.dev/, with show_kind
  };
  explicit TablePrinter(Options options) : options_(std::move(options)) {}
  void print(std::ostream& out, const json::Value& table);

 private:
  Options options_;
  json::Value columns_;
  std::vector<size_t> widths_;
  bool headed_ = false;
};

// Events in the order in which they were told: by lastTimestamp, which knows whole seconds only,
// then by the revision of their last change.
bool told_before(const json::Value& a, const json::Value& b);
void sort_events(json::Value& table);  // its rows, the oldest first

// Without metadata.managedFields, for people.
json::Value without_managed_fields(json::Value object);

}  // namespace umpteenth::umpctl
