#include "store/git_object.h"

#include <charconv>

#include "base/crypto.h"
#include "base/error.h"

namespace umpteenth::store {
namespace {

constexpr char kActor[] = "Umpd-Actor: ";
constexpr char kRevision[] = "Umpd-Revision: ";
constexpr char kBase[] = "Umpd-Base: ";
constexpr size_t kMaxSubject = 500;

// One line without what would end a name or begin a trailer.
std::string one_line(std::string_view text, bool name) {
  std::string line;
  for (const char c : text.substr(0, text.find('\n'))) {
    if (line.size() >= kMaxSubject && (static_cast<unsigned char>(c) & 0xc0) != 0x80) break;
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    line += control || (name && (c == '<' || c == '>')) ? '_' : c;
  }
  if (line.empty()) line = name ? "unknown" : "change";
  return line;
}

std::string_view name_of(ObjectType type) {
  switch (type) {
    case ObjectType::commit:
      return "commit";
    case ObjectType::tree:
      return "tree";
    case ObjectType::blob:
      break;
  }
  return "blob";
}

bool read_number(std::string_view text, auto& number) {
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
}

Oid need_oid(std::string_view hex) {
  const auto id = Oid::from_hex(hex.substr(0, 40));
  if (!id) throw Error(Code::internal, "store: a git commit names a malformed id");
  return *id;
}

void parse_author(std::string_view line, ParsedCommit& commit) {
  const size_t close = line.rfind('>');
  if (close == std::string_view::npos || close + 2 > line.size()) return;
  commit.author = line.substr(0, close + 1);
  read_number(line.substr(close + 2), commit.seconds);
}

void parse_trailer(std::string_view line, ParsedCommit& commit) {
  if (line.starts_with(kActor)) {
    commit.actor = line.substr(sizeof kActor - 1);
  } else if (line.starts_with(kRevision)) {
    const std::string_view range = line.substr(sizeof kRevision - 1);
    if (!read_number(range, commit.first_revision)) return;
    commit.last_revision = commit.first_revision;
    if (const size_t dash = range.find('-'); dash != std::string_view::npos)
      read_number(range.substr(dash + 1), commit.last_revision);
  } else if (line.starts_with(kBase)) {
    commit.base = Oid::from_hex(line.substr(sizeof kBase - 1));
  }
}

}  // namespace

std::string Oid::hex() const { return crypto::hex(view()); }

Oid Oid::from_bytes(std::string_view twenty) {
  Oid id;
  if (twenty.size() < id.bytes.size()) throw Error(Code::internal, "store: a short object id");
  std::memcpy(id.bytes.data(), twenty.data(), id.bytes.size());
  return id;
}

std::optional<Oid> Oid::from_hex(std::string_view forty) {
  if (forty.size() != 40) return std::nullopt;
  Oid id;
  for (size_t i = 0; i < id.bytes.size(); ++i) {
    unsigned value = 0;
    const char* at = forty.data() + 2 * i;
    if (std::from_chars(at, at + 2, value, 16).ptr != at + 2) return std::nullopt;
    id.bytes[i] = static_cast<unsigned char>(value);
  }
  return id;
}

Oid hash_object(ObjectType type, std::string_view content) {
  std::string whole(name_of(type));
  whole += " " + std::to_string(content.size());
  whole += '\0';
  whole.append(content);
  return Oid::from_bytes(crypto::sha1(whole));
}

std::string to_string(const CommitText& commit) {
  const std::string time = std::to_string(commit.seconds) + " +0000\n";
  const std::string actor = one_line(commit.actor, true);
  std::string text = "tree " + commit.tree.hex() + "\n";
  if (!commit.parent.is_null()) text += "parent " + commit.parent.hex() + "\n";
  text += "author " + actor + " <umpd@localhost> " + time;
  text += "committer umpd <umpd@localhost> " + time;
  text += "\n" + one_line(commit.message, false) + "\n\n";
  text += kActor + actor + "\n" + kRevision + std::to_string(commit.first_revision);
  if (commit.last_revision != commit.first_revision)
    text += "-" + std::to_string(commit.last_revision);
  text += "\n";
  if (!commit.base.is_null()) text += kBase + commit.base.hex() + "\n";
  return text;
}

ParsedCommit parse_commit(std::string_view text) {
  ParsedCommit commit;
  if (!text.starts_with("tree ")) throw Error(Code::internal, "store: not a git commit");
  bool head = true, trailers = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (head) {
      if (line.starts_with("tree ")) commit.tree = need_oid(line.substr(5));
      if (line.starts_with("parent ") && !commit.parent) commit.parent = need_oid(line.substr(7));
      if (line.starts_with("author ")) parse_author(line.substr(7), commit);
      head = !line.empty();
    } else if (commit.subject.empty()) {
      commit.subject = line;
    } else if (line.empty()) {
      trailers = true;
    } else if (trailers) {
      parse_trailer(line, commit);
    }
  }
  return commit;
}

}  // namespace umpteenth::store
