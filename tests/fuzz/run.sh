#!/usr/bin/env bash
# Every fuzz target over its corpus, then some seconds of new inputs. Build first: ./dev build dev.
#   tests/fuzz/run.sh [SECONDS a target, default 2]
# A finding is kept in build-dev/fuzz/ and its first lines are printed.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
seconds=${1:-2}
[ -n "$seconds" ] || seconds=2
passed=0 failed=0
mkdir -p build-dev/fuzz
export ASAN_OPTIONS=external_symbolizer_path=/usr/bin/addr2line
for source in tests/fuzz/*_fuzz.cc; do
  name=$(basename "$source" _fuzz.cc)
  corpus=tests/fuzz/corpus/$name
  new=$(mktemp -d) log=build-dev/fuzz/$name.log
  if [ -z "$(ls "$corpus" 2>/dev/null)" ]; then echo "FAILED: $name has no corpus"; failed=$((failed + 1)); continue; fi
  # First the corpus alone: an input that was a finding once is a finding again, whatever the time.
  if setarch -R "build-dev/bin/fuzz_$name" -runs=0 -timeout=10 -rss_limit_mb=1024 -artifact_prefix="build-dev/fuzz/$name-" "$corpus" >"$log" 2>&1 &&
    setarch -R "build-dev/bin/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=4096 \
      -artifact_prefix="build-dev/fuzz/$name-" "$new" "$corpus" >"$log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1)); echo "FAILED: fuzz_$name"
    grep -vE '^#|^INFO' "$log" | head -30 | sed 's/^/    /'
  fi
  rm -rf "$new"
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
