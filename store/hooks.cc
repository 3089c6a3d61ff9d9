#include "store/hooks.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/fd.h"

namespace umpteenth::store {
namespace fs = std::filesystem;
namespace {

// Runs as whoever pushes, where umpd itself may not be at hand. Every new object of every new
// commit is looked at, whatever its path: a value that the last commit removes would stay as well.
// `"stringData": {"key": "sealed"}` is what umpd leaves of an applied manifest in its annotation.
constexpr char kPreReceive[] = R"sh(#!/bin/sh
# Made by umpd, at each of its starts.
sealed='\\?"stringData\\?":\{(\\?"[A-Za-z0-9_.-]+\\?":\\?"sealed\\?",?)*\}'
secret='(^|[{,[:space:]"'"'"'])kind["'"'"']?[[:space:]]*:[[:space:]]*["'"'"']?Secret'
LC_ALL=C; export LC_ALL
while read -r _ new _; do
  case $new in *[!0]*) ;; *) continue ;; esac
  objects=$(git rev-list --objects "$new" --not --all) || exit 1
  blobs=$(printf '%s\n' "$objects" | git cat-file --batch-check='%(objecttype) %(objectname) %(rest)') || exit 1
  blobs=$(printf '%s\n' "$blobs" | sed -n 's/^blob //p')
  printf '%s\n' "$blobs" | cut -d ' ' -f 1 | git cat-file --batch | grep -aq stringData || continue
  printf '%s\n' "$blobs" | while read -r id path; do
    git cat-file blob "$id" | grep -aqE "$secret" || continue
    git cat-file blob "$id" | sed -E "s/$sealed//g" | grep -aq stringData || continue
    echo "umpteenth: $path: spec.stringData: Forbidden: a file in git must not hold clear values; use umpctl apply, or umpctl seal for a file" >&2
    exit 1
  done || exit 1
done
)sh";

bool as_it_should_be(const fs::path& hook) {
  struct stat st {};
  if (::stat(hook.c_str(), &st) != 0 || (st.st_mode & 0777) != 0700) return false;
  return read_file(hook) == kPreReceive;
}

}  // namespace

void ensure_hooks(const fs::path& repository) {
  const fs::path folder = repository / "hooks", hook = folder / "pre-receive";
  if (as_it_should_be(hook)) return;
  fs::create_directories(folder);
  write_file_durably(hook, kPreReceive, 0700);
}

}  // namespace umpteenth::store
