# Sourced by the e2e scripts: an umpd of their own on the engine in $UMPTEENTH_ENGINE, checks that
# are counted, and a closing line. Everything made here goes at the end.
# shellcheck shell=bash
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

BIN=${UMPTEENTH_BIN:-$PWD/build/bin}
export PATH=$BIN:$PATH
ENGINE=${UMPTEENTH_ENGINE:?set UMPTEENTH_ENGINE to the socket of an engine; ./dev test e2e does}
ENGINE=${ENGINE#unix://}
WORK=$(mktemp -d /tmp/ump-e2e-XXXXXX)
IMAGE=umpteenth-busybox:latest
export SANDBOX_IMAGE=$IMAGE   # umpd's option sandbox.image
passed=0 failed=0 skipped=0
umpd_pid= umpd_log=

ok() { passed=$((passed + 1)); echo "ok: $1"; }
bad() { # NAME [what was seen]
  failed=$((failed + 1))
  echo "FAILED: $1"
  { [ $# -lt 2 ] || printf '%s\n' "$2" | head -20; what_umpd_says; } | cut -c1-1000 | sed 's/^/    /'
}
# A failure is read by somebody who has nothing but this output.
what_umpd_says() {
  local run
  if [ -s "$umpd_log" ]; then echo "-- the end of umpd's log:"; tail -15 "$umpd_log"; fi
  kill -0 "$umpd_pid" 2>/dev/null || return 0
  echo "-- engines, the newest runs, and what the newest one did:"
  timeout 5 umpctl get sandboxengines -o 'jsonpath={.items[*].status.conditions}{"\n"}' 2>&1
  timeout 5 umpctl get runs -A --sort-by .metadata.creationTimestamp 2>&1 | tail -6
  run=$(timeout 5 umpctl get runs --sort-by .metadata.creationTimestamp -o name 2>/dev/null | tail -1 | sed 's|.*/|run/|')
  [ -n "$run" ] || return 0
  timeout 5 umpctl get "$run" -o 'jsonpath={.status}{"\n"}' 2>&1
  timeout 5 umpctl timeline "$run" 2>&1 | tail -12
}
skip() { skipped=$((skipped + 1)); echo "SKIPPED: $1: $2"; }

# expect NAME STATUS REGEX COMMAND…: its exit status, and what stdout+stderr match ("" = anything,
# !REGEX = must not match).
expect() {
  local name=$1 status=$2 regex=$3 out rc; shift 3
  if [ "$(type -t "$1")" = function ]; then out=$("$@" 2>&1 </dev/null); else out=$(timeout 120 "$@" 2>&1 </dev/null); fi
  rc=$?
  if [ "$rc" != "$status" ]; then bad "$name" "exit $rc instead of $status from: $*
$out"; return 1; fi
  if [ -n "$regex" ]; then
    if [ "${regex:0:1}" = '!' ]; then
      if grep -qE -- "${regex:1}" <<<"$out"; then bad "$name" "must not match ${regex:1}:
$out"; return 1; fi
    elif ! grep -qE -- "$regex" <<<"$out"; then bad "$name" "does not match $regex:
$out"; return 1; fi
  fi
  ok "$name"
}

# eventually NAME SECONDS COMMAND…: polls until it succeeds.
eventually() {
  local name=$1 seconds=$2; shift 2
  local deadline=$((SECONDS + seconds * ${UMPTEENTH_PATIENCE:-3}))   # CI machines are slow and shared
  until "$@" >"$WORK/eventually" 2>&1; do
    if [ $SECONDS -ge $deadline ]; then bad "$name" "not within $seconds s: $*
$(cat "$WORK/eventually")"; return 1; fi
    sleep 0.1
  done
  ok "$name"
}

engine_api() { # METHOD PATH [curl arguments]
  local method=$1 path=$2; shift 2
  curl -sS --max-time 30 --unix-socket "$ENGINE" -X "$method" "http://engine$path" "$@"
}

# start_umpd DATA [flags…]: waits until it is ready; sets umpd_pid, UMPCONFIG, KUBECONFIG.
start_umpd() {
  local data=$1; shift
  "$BIN/umpd" serve --data-dir "$data" --port 0 --engine "unix://$ENGINE" "$@" </dev/null >>"$data.log" 2>&1 &
  umpd_pid=$! umpd_log=$data.log
  local deadline=$((SECONDS + 30))
  export UMPCONFIG=$data/kubeconfig KUBECONFIG=$data/kubeconfig
  until [ -s "$data/kubeconfig" ] && umpctl get --raw /readyz >/dev/null 2>&1; do
    if ! kill -0 $umpd_pid 2>/dev/null || [ $SECONDS -ge $deadline ]; then
      echo "umpd did not become ready:"; tail -5 "$data.log"; return 1
    fi
    sleep 0.05
  done
}

stop_umpd() { # [seconds]: its exit status; 124 where it does not end
  [ -n "$umpd_pid" ] || return 0
  local deadline=$((SECONDS + ${1:-12})) rc
  kill "$umpd_pid" 2>/dev/null
  while kill -0 "$umpd_pid" 2>/dev/null; do
    if [ $SECONDS -ge $deadline ]; then kill -9 "$umpd_pid"; wait "$umpd_pid" 2>/dev/null; umpd_pid=; return 124; fi
    sleep 0.05
  done
  wait "$umpd_pid" 2>/dev/null; rc=$?
  umpd_pid=
  return $rc
}

# Containers and networks of an instance that are left on the engine (the relay goes with umpd's data).
left_of() { # instance
  local filter; filter=$(printf '{"label":["umpteenth.instance=%s"]}' "$1" | jq -sRr @uri)
  { engine_api GET "/containers/json?all=1&filters=$filter"; engine_api GET "/networks?filters=$filter"; } |
    jq -r '.[] | (.Names[0]? // .Name)'
}
remove_instance() { # everything of it on the engine
  local filter id; filter=$(printf '{"label":["umpteenth.instance=%s"]}' "$1" | jq -sRr @uri)
  for id in $(engine_api GET "/containers/json?all=1&filters=$filter" | jq -r '.[].Id'); do engine_api DELETE "/containers/$id?force=1&v=1" >/dev/null; done
  for id in $(engine_api GET "/networks?filters=$filter" | jq -r '.[].Id'); do engine_api DELETE "/networks/$id" >/dev/null; done
}

finish() {
  stop_umpd 15 >/dev/null 2>&1
  local instance
  for instance in "$WORK"/*/instance; do [ ! -s "$instance" ] || remove_instance "$(cat "$instance")"; done
  rm -rf "$WORK"
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ]
}
trap 'finish; exit $?' EXIT
trap 'exit 130' INT TERM

phase() { umpctl get "run/$1" -o 'jsonpath={.status.phase}'; }
in_phase() { [ "$(phase "$1")" = "$2" ]; }
newest_run() { umpctl get runs -l "umpteenth.dev/job=$1" --sort-by .metadata.creationTimestamp -o name | tail -1 | sed 's|.*/||'; }
