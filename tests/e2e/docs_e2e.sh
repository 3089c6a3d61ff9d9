#!/usr/bin/env bash
# What README and the guides show works as it stands: manifests are accepted, fragments fit into a
# job, and README's first job runs by its own commands.
. "$(dirname "$0")/lib.sh"

D=$WORK/data
start_umpd "$D" || { bad "umpd starts"; exit 1; }

# blocks FILE LANGUAGE: each fenced block of it to a file of its own; prints their names in order.
blocks() {
  local folder; folder=$(mktemp -d "$WORK/blocks-XXXXXX")
  awk -v language="$2" -v folder="$folder" '
    /^```/ && inside { inside = 0; next }
    /^```/ { inside = 1; taken = (substr($0, 4) == language); if (taken) file = sprintf("%s/%02d", folder, ++n); next }
    inside && taken { print >file }' "$1"
  find "$folder" -type f | sort
}

shown=0
for file in README.md docs/*.md docs/guides/*.md; do
  n=0
  for block in $(blocks "$file" yaml); do
    n=$((n + 1)) shown=$((shown + 1))
    if grep -q '^apiVersion:' "$block"; then
      expect "$file: manifest $n" 0 'created|configured|unchanged' umpctl apply -f "$block"
    else
      expect "$file: fragment $n fits into a job" 0 'patched' umpctl patch job disk-report --dry-run=server -p "$(cat "$block")"
    fi
  done
done
[ $shown -ge 8 ] && ok "there are manifests in them" || bad "there are manifests in them" "$shown"

# README's first job, each command as it is written.
mkdir "$WORK/readme"
for block in $(blocks README.md yaml); do grep -q 'name: first' "$block" && cp "$block" "$WORK/readme/first.yaml"; done
commands=$(for block in $(blocks README.md ''); do grep -h '^umpctl .*first' "$block"; done)
[ "$(wc -l <<<"$commands")" -ge 4 ] && ok "README has commands for its first job" || bad "README has commands for its first job" "$commands"
while read -r command; do
  expect "README: $command" 0 '' bash -c "cd '$WORK/readme' && $command"
done <<<"$commands"
[ "$(cat "$WORK/readme/out/today.txt" 2>/dev/null)" = "$(date -u +%F)" ] && ok "its artifact is the date" || bad "its artifact is the date"
expect "README: diff says what an apply would do" 1 '^\+ .*another text' bash -c "cd '$WORK/readme' && sed -i 's/Write today.*/another text/' first.yaml && umpctl diff -f first.yaml"

# Every command that they name is one.
grep -hoE '(^|[`(])umpctl [a-z-]+' README.md docs/*.md docs/guides/*.md examples/jobs/* | sed 's/.*umpctl //' | sort -u >"$WORK/named"
while read -r command; do
  umpctl help "$command" 2>&1 | grep -E 'unknown command|umpctl has no'   # not: auth needs a second word
done <"$WORK/named" >"$WORK/unknown"
[ -s "$WORK/named" ] && [ ! -s "$WORK/unknown" ] && ok "the commands that documents name exist" || bad "the commands that documents name exist" "$(cat "$WORK/unknown")"
