#!/usr/bin/env bash
# What umpd stands on fails: a full disk, an engine that stops.
. "$(dirname "$0")/lib.sh"
. tests/e2e/jobs.sh

own=$WORK/own-engine   # an engine that may be stopped
shared=$ENGINE
small=$WORK/small      # a disk that may be full
ends_all() {
  local rc
  stop_umpd 15 >/dev/null 2>&1
  [ ! -d "$own" ] || tests/support/engine.sh down "$own" >/dev/null 2>&1
  ENGINE=$shared
  mountpoint -q "$small" && umount "$small"
  finish; rc=$?
  exit $rc
}
trap ends_all EXIT
if [ "$(id -u)" = 0 ]; then tests/support/engine.sh up "$own" >"$WORK/own.log" 2>&1 & own_up=$!; fi

{ providers
  job sh sh 'schedule: {cron: "0 0 1 1 *", overlapPolicy: Parallel}'
} >"$WORK/jobs.yaml"
theirs() { job theirs sh | tail -n +2; }

# A full disk.
mkdir "$small"
if mount -t tmpfs -o size=24m,mode=0700 tmpfs "$small" 2>/dev/null; then
  start_umpd "$small/data" || bad "umpd starts on a small disk"
  expect "it writes" 0 created umpctl apply -f <(theirs)
  dd if=/dev/zero of="$small/filler" bs=64k >/dev/null 2>&1
  full() { # writes until one is refused: what was open may have had room
    local i
    for i in $(seq 40); do umpctl annotate job theirs "fill=$(head -c 30000 /dev/zero | tr '\0' x)$i" --overwrite >"$WORK/full" 2>&1 || return 0; done
    return 1
  }
  full && ok "a full disk refuses writes" || bad "a full disk refuses writes"
  grep -qiE 'no space|disk|full|room' "$WORK/full" && ok "and says so" || bad "and says so" "$(cat "$WORK/full")"
  expect "reads go on" 0 '^theirs ' umpctl get jobs
  rm "$small/filler"
  eventually "writes go on when there is room" $patience umpctl annotate job theirs after=1 --overwrite
  kept=$(umpctl get job theirs -o 'jsonpath={.metadata.resourceVersion}')
  stop_umpd 12
  expect "nothing is corrupted" 0 '' "$BIN/umpd" fsck --data-dir "$small/data"
  start_umpd "$small/data" && [ "$(umpctl get job theirs -o 'jsonpath={.metadata.annotations.after} {.metadata.resourceVersion}')" = "1 $kept" ] && ok "and all is there at the next start" || bad "and all is there at the next start"
  stop_umpd 12
else
  skip "a full disk" "no tmpfs can be mounted"
fi

# An engine that stops is not a dead run.
if [ "$(id -u)" = 0 ] && wait "$own_up"; then
  ENGINE=$own/engine/docker.sock
  start_umpd "$WORK/data2" || bad "umpd starts on its own engine"
  umpctl apply -f "$WORK/jobs.yaml" >/dev/null
  alive=$(start sh 'for i in $(seq 60); do echo $i; sleep 0.1; done; echo got through')
  eventually "a run is at work on it" $patience at_work "$alive"
  tests/support/engine.sh stop "$own" >>"$WORK/own.log" 2>&1
  not_ready() { umpctl get sandboxengine default -o "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}" | grep -q False; }
  eventually "an engine that is down is not Ready" 60 not_ready
  in_phase "$alive" Running && ok "its run goes on" || bad "its run goes on" "$(told "$alive")"
  tests/support/engine.sh up "$own" >>"$WORK/own.log" 2>&1
  is_ready() { umpctl get sandboxengine default -o "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}" | grep -q True; }
  eventually "the engine is Ready again" 60 is_ready
  ends "the run ends by itself" 60 "$alive" '^(Succeeded|Failed AgentFailed)'
  ends "new runs work" $patience "$(start sh 'echo again')" '^Succeeded .*again'
else
  skip "an engine that stops" "no engine of its own: $(tail -1 "$WORK/own.log" 2>/dev/null)"
fi
