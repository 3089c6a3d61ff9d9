#include "cmd/umpctl/command.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/fd.h"
#include "cmd/umpctl/output.h"
#include "cmd/umpctl/resources.h"
#include "tests/support/golden.h"

namespace umpteenth::umpctl {
namespace {

std::string refusal(const std::string& command, const std::vector<std::string>& words) {
  try {
    parse(*find_command(command), words);
  } catch (const Error& e) {
    return e.message();
  }
  return "accepted";
}

TEST(Parser, takes_flags_in_every_form) {
  Invocation line = parse(*find_command("get"),
                          {"jobs", "-oyaml", "-l", "a=b", "--sort-by=.x", "-Aw", "--", "-x"});
  EXPECT_EQ(line.arguments, (std::vector<std::string>{"jobs", "-x"}));
  EXPECT_EQ(line.get("output"), "yaml");
  EXPECT_EQ(line.get("selector"), "a=b");
  EXPECT_EQ(line.get("sort-by"), ".x");
  EXPECT_TRUE(line.on("all-namespaces"));
  EXPECT_TRUE(line.on("watch"));
  EXPECT_FALSE(line.on("no-headers"));
}

TEST(Parser, a_bare_flag_does_not_eat_the_next_word) {
  Invocation line = parse(*find_command("apply"), {"--dry-run", "-f", "x.yaml", "-f", "y.yaml"});
  EXPECT_EQ(line.get("dry-run"), "client");
  EXPECT_EQ(line.all("filename"), (std::vector<std::string>{"x.yaml", "y.yaml"}));
  EXPECT_EQ(parse(*find_command("apply"), {}).get("dry-run"), "none");
}

TEST(Parser, names_what_it_does_not_know) {
  EXPECT_EQ(refusal("get", {"--nope"}), "unknown flag --nope; see 'umpctl get --help'");
  EXPECT_EQ(refusal("get", {"-Z"}), "unknown flag -Z; see 'umpctl get --help'");
  EXPECT_EQ(refusal("get", {"-o"}), "--output needs a value (FORM); see 'umpctl get --help'");
  EXPECT_EQ(refusal("get", {"--watch=maybe"}),
            "--watch is \"maybe\", it must be true or false; see 'umpctl get --help'");
}

TEST(Parser, knows_what_was_meant) {
  EXPECT_EQ(refusal("get", {"--ouput=json"}),
            "unknown flag --ouput; did you mean --output? see 'umpctl get --help'");
  EXPECT_EQ(refusal("run", {"--folow"}),
            "unknown flag --folow; did you mean --follow? see 'umpctl run --help'");
}

TEST(Kinds, are_named_where_a_word_is_none) {
  const auto refusal_of = [](const std::string& word) -> std::string {
    try {
      return kind_of_word(word).kind;
    } catch (const Error& e) {
      return e.message();
    }
  };
  EXPECT_EQ(refusal_of("job"), "Job");
  EXPECT_TRUE(refusal_of("jbos").starts_with(
      "there is no kind \"jbos\"; did you mean jobs? there are jobs, runs"))
      << refusal_of("jbos");
  EXPECT_TRUE(refusal_of("pods").starts_with("there is no kind \"pods\"; there are jobs, runs"))
      << refusal_of("pods");
}

TEST(Usage, says_what_is_missing) {
  const auto refusal_of = [](const char* command, const std::vector<std::string>& words) {
    Invocation line = parse(*find_command(command), words);
    try {
      find_command(command)->run(line);
    } catch (const Error& e) {
      return e.message();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(
      refusal_of("completion", {}),
      "name the shell: umpctl completion bash or umpctl completion zsh; bash takes it by source "
      "<(umpctl completion bash)");
  EXPECT_EQ(refusal_of("artifacts", {}), "name one run: umpctl artifacts run/NAME; none is named");
  EXPECT_EQ(refusal_of("artifacts", {"run/a", "run/b"}),
            "name one run: umpctl artifacts run/NAME; 2 are named");
  EXPECT_EQ(refusal_of("artifacts", {"run/a", "-o", "json"}),
            "-o is the folder that the files go to, \"json\" is a form of output: for a folder of "
            "that name say ./json; without -o they are listed");
}

TEST(Parser, reads_durations) {
  const auto ms = [](const std::string& text) {
    return parse(*find_command("wait"), {"--timeout=" + text}).milliseconds("timeout");
  };
  EXPECT_EQ(ms("30s"), 30'000);
  EXPECT_EQ(ms("1h30m"), 5'400'000);
  EXPECT_EQ(ms("250ms"), 250);
  EXPECT_EQ(ms("7"), 7'000);
  EXPECT_EQ(ms("-1s"), -1'000);
  EXPECT_THROW(ms("soon"), Error);
  EXPECT_THROW(ms("5y"), Error);
}

TEST(Commands, have_unique_names_flags_and_letters) {
  std::set<std::string> names;
  for (const Command& c : commands()) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
    EXPECT_FALSE(c.summary.empty()) << c.name;
    std::set<std::string> flags;
    std::set<char> letters;
    for (const auto* list : {&c.flags, &global_flags()})
      for (const Flag& f : *list) {
        EXPECT_TRUE(flags.insert(f.name).second) << c.name << " --" << f.name;
        if (f.letter) {
          EXPECT_TRUE(letters.insert(f.letter).second) << c.name << " -" << f.letter;
        }
        EXPECT_FALSE(f.help.empty()) << c.name << " --" << f.name;
      }
  }
}

TEST(Commands, are_documented) {
  EXPECT_TRUE(testing::golden("docs/umpctl.md", commands_markdown()));
}

TEST(Output, form_must_be_known) {
  EXPECT_EQ(parse_output("jsonpath={.a}").argument, "{.a}");
  EXPECT_THROW(parse_output("xml"), Error);
}

TEST(Output, custom_columns_have_heads_unless_told_otherwise) {
  const json::Value list =
      json::parse(R"({"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]})");
  Output output = parse_output("custom-columns=N:.metadata.name");
  std::ostringstream with, without;
  print_object(with, output, *apis::find_kind_by_name("Job"), list);
  EXPECT_EQ(with.str(), "N\na\nb\n");
  output.headers = false;
  print_object(without, output, *apis::find_kind_by_name("Job"), list);
  EXPECT_EQ(without.str(), "a\nb\n");
}

TEST(Table, is_aligned_and_keeps_its_widths_over_a_watch) {
  TablePrinter printer({});
  std::ostringstream out;
  printer.print(
      out,
      json::parse(
          R"({"columnDefinitions":[{"name":"Name","priority":0},{"name":"Wide","priority":1},{"name":"Age","priority":0}],
    "rows":[{"cells":["a-long-name","w","5s"]},{"cells":["b",null,null]}]})"));
  printer.print(out, json::parse(R"({"columnDefinitions":[],"rows":[{"cells":["c","w","7s"]}]})"));
  EXPECT_EQ(out.str(), "NAME          AGE\na-long-name   5s\nb\nc             7s\n");
}

TEST(Table, shows_control_characters) {
  std::ostringstream out;
  TablePrinter({}).print(out, json::parse(R"({"columnDefinitions":[{"name":"A","priority":0}],
    "rows":[{"cells":["x\u001b[31my\nz"]}]})"));
  EXPECT_EQ(out.str(), "A\nx^[[31my z\n");
}

TEST(Table, has_events_in_the_order_in_which_they_were_told) {
  json::Value table = json::parse(
      R"({"rows":[{"cells":["d"],"object":{"lastTimestamp":"2026-01-03T00:00:00Z"}},
                  {"cells":["c"],"object":{"lastTimestamp":"2026-01-02T00:00:00Z","metadata":{"resourceVersion":"100"}}},
                  {"cells":["b"],"object":{"lastTimestamp":"2026-01-02T00:00:00Z","metadata":{"resourceVersion":"99"}}},
                  {"cells":["a"],"object":{"lastTimestamp":"2025-12-31T00:00:00Z","metadata":{"resourceVersion":"200"}}}]})");
  sort_events(table);
  std::string order;
  for (const json::Value& row : table.get("rows").items())
    order += row.get("cells").items()[0].as_string();
  EXPECT_EQ(order, "abcd");
}

TEST(Manifests, name_file_line_and_rule) {
  TempDir folder;
  const auto refusal_of = [&](const std::string& text) -> std::string {
    write_file_durably(folder.path() / "m.yaml", text, 0600);
    Invocation line =
        parse(*find_command("apply"), {"-n", "default", "-f", (folder.path() / "m.yaml").string()});
    try {
      manifests(line);
    } catch (const Error& e) {
      return e.message().substr(e.message().find("m.yaml"));
    }
    return "accepted";
  };
  EXPECT_EQ(refusal_of("a: 1\n"), "m.yaml:1: kind is missing");
  EXPECT_EQ(refusal_of("kind: Job\n"), "m.yaml:1: apiVersion is missing");
  EXPECT_EQ(refusal_of("kind: Car\napiVersion: umpteenth.dev/v1alpha1\n"),
            "m.yaml:1: there is no kind \"Car\" in version \"umpteenth.dev/v1alpha1\"");
  EXPECT_EQ(refusal_of("kind: Workspace\napiVersion: umpteenth.dev/v1alpha1\n"),
            "m.yaml:1: metadata.name is missing");
  const std::string generated =
      "kind: Run\napiVersion: umpteenth.dev/v1alpha1\nmetadata: {generateName: a-}\n";
  EXPECT_NE(refusal_of(generated).find("umpctl create -f"), std::string::npos)
      << "without a name, delete would take the whole collection";
  EXPECT_EQ(refusal_of("- 1\n"), "m.yaml:1: a manifest must be a mapping, this is array");
  EXPECT_EQ(
      refusal_of("kind: Jobb\napiVersion: umpteenth.dev/v1alpha1\n"),
      "m.yaml:1: there is no kind \"Jobb\" in version \"umpteenth.dev/v1alpha1\"; did you mean "
      "Job?");
  EXPECT_NE(refusal_of("a: &x 1\nb: *x\n"), "accepted");
}

TEST(Manifests, tell_where_the_field_stands_that_the_server_refused) {
  TempDir folder;
  const std::string file = (folder.path() / "m.yaml").string();
  write_file_durably(
      file,
      "kind: Workspace\napiVersion: umpteenth.dev/v1alpha1\nmetadata: {name: a}\n---\n"
      "apiVersion: v1\nkind: List\nitems:\n"
      "- apiVersion: umpteenth.dev/v1alpha1\n  kind: Workspace\n"
      "  metadata:\n    name: b\n"
      "  spec:\n    displayName: x\n    limits:\n      dailySpendUSD: -1\n",
      0600);
  Invocation line = parse(*find_command("apply"), {"-f", file});
  const std::vector<Manifest> found = manifests(line);
  ASSERT_EQ(found.size(), 2U);
  const Error refused(
      Code::invalid, "Workspace \"b\" is invalid: …",
      {{"spec.limits.dailySpendUSD",
        "Invalid value: -1: spec.limits.dailySpendUSD in body should be at least 0", ""},
       {"spec.owner", "Required value", ""}});
  EXPECT_EQ(failure_text(found[1], refused),
            "error: " + file + ":12: spec.owner: Required value\n" + "error: " + file +
                ":15: spec.limits.dailySpendUSD: Invalid value: -1: should be at least 0\n");
  EXPECT_EQ(failure_text(found[0], Error(Code::forbidden, "you may not")),
            "error: " + file + ":1: workspace.umpteenth.dev/a: you may not\n");
}

}  // namespace
}  // namespace umpteenth::umpctl
