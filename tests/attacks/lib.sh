# Sourced by the attack scripts: a lab of their own, umpd on the lab's host, jobs whose model runs
# whatever script the test hands over, as agent and as root. What was reached is read from the lab's
# logs, not from what the sandbox says. UMPTEENTH_BIN is another folder with umpd, umpctl and ump.
# ATTACHMENT=namespace (default) or network: how the sandboxes meet the broker.
# shellcheck shell=bash
set -uo pipefail
ATTACKS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
LAB_SH=$ATTACKS/../support/lab/lab.sh
ATTACHMENT=${ATTACHMENT:-namespace}

# The script runs twice: outside it makes the lab and starts itself again on the lab's host.
if [ -z "${ATTACK_LAB:-}" ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "SKIPPED: $(basename "$0"): a lab needs root"; echo "0 passed, 0 failed, 1 skipped"; exit 0
  fi
  ATTACK_LAB=$(mktemp -d /tmp/ump-atk-XXXXXX); export ATTACK_LAB
  trap '"$LAB_SH" down "$ATTACK_LAB" >/dev/null 2>&1; rm -rf "$ATTACK_LAB"' EXIT
  trap 'exit 130' INT TERM
  UMPTEENTH_ENGINE=$("$LAB_SH" up "$ATTACK_LAB") || { echo "FAILED: the lab does not start"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
  export UMPTEENTH_ENGINE
  "$LAB_SH" host "$ATTACK_LAB" "$(readlink -f "$0")" "$@"
  exit $?
fi

. "$ATTACKS/../e2e/lib.sh"
ATTACK_IMAGE=umpteenth-attacks:latest

build_probe() { # the static programs that do what busybox cannot
  local program
  for program in probe flood; do gcc -O1 -static -o "$WORK/$program" "$ATTACKS/$program.c" || return 1; done
  printf 'FROM %s\nCOPY probe flood /usr/local/bin/\n' "$IMAGE" >"$WORK/Dockerfile"
  tar -C "$WORK" -c Dockerfile probe flood |
    engine_api POST "/build?t=$ATTACK_IMAGE" -H 'Content-Type: application/x-tar' --data-binary @- | grep -q 'Successfully tagged'
}

# A job runs once at a time: what goes on side by side needs a job each.
JOBS=(none-agent none-root listed-agent listed-root)
OTHERS=(victim)
declare_network() { # job
  case $1 in
    none-* | victim) printf '  network: {mode: None}\n' ;;
    listed-*) printf '  network: {mode: AllowedDomains, allowedDomains: [listed.lab.test]}\n' ;;
  esac
}
declare_jobs() {
  local job
  {
    cat <<'YAML'
apiVersion: umpteenth.dev/v1alpha1
kind: ModelProvider
metadata: {name: attacker}
spec:
  type: Scripted
  models: [{name: scripted}]
  script:
    - call: {tool: bash, arguments: {command: '{{input.script}}', timeout_seconds: 600}}
    - match: {tool: bash}
      call: {tool: finish, arguments: {status: success, summary: The attack ended.}}
YAML
    for job in "${JOBS[@]}" "${OTHERS[@]}"; do
      printf -- '---\napiVersion: umpteenth.dev/v1alpha1\nkind: Job\nmetadata: {name: %s}\nspec:\n' "$job"
      printf '  instruction: Attack.\n  model: {provider: attacker, name: scripted}\n  limits: {timeoutSeconds: 700}\n'
      printf '  sandbox: {image: %s, runAsRoot: %s, resources: {memoryMiB: 128, pids: 64}}\n' "$ATTACK_IMAGE" "$([ "${job##*-}" = root ] && echo true || echo false)"
      declare_network "$job"
    done
  } | umpctl apply -f - >"$WORK/apply" 2>&1 || { cat "$WORK/apply"; return 1; }
  umpctl patch workspace default -p '{"spec":{"limits":{"maxConcurrentRuns":8}}}' >"$WORK/apply" 2>&1 || cat "$WORK/apply"
}

begin() { # an umpd with the jobs; sets D
  D=$WORK/data
  build_probe || { bad "the probe is built"; exit 1; }
  start_umpd "$D" || { bad "umpd starts"; exit 1; }
  umpctl patch sandboxengine default -p "{\"spec\":{\"attachment\":\"$ATTACHMENT\"}}" >"$WORK/apply" 2>&1 || cat "$WORK/apply"
  eventually "sandboxes meet the broker by $ATTACHMENT" 60 attached
  declare_jobs || { bad "the jobs are declared"; exit 1; }
}
attached() { [ "$(umpctl get sandboxengine default -o 'jsonpath={.status.attachment}')" = "$ATTACHMENT" ]; }
on_networks() { [ "$ATTACHMENT" = network ]; }

# launch JOB SCRIPT: prints the run's name. What the script printed is in `output RUN` afterwards.
launch() {
  local out
  out=$(umpctl run "$1" --input "$(jq -nc --arg s "$2" '{script: $s}')" 2>&1) || { echo "launch of $1: $out" >&2; return 1; }
  grep -oE "$1-[a-z0-9]+" <<<"$out" | head -1
}
ended() { case $(phase "$1") in Succeeded | Failed | TimedOut | Cancelled | Skipped) ;; *) return 1 ;; esac; }
await() { # RUN [seconds]
  local deadline=$((SECONDS + ${2:-240}))
  until ended "$1"; do [ $SECONDS -lt $deadline ] || { bad "run $1 ends"; return 1; }; sleep 0.1; done
}
output() { umpctl timeline "run/$1" -o json | jq -r 'select(.type == "tool.result" and .tool == "bash") | .text'; }
sandbox_of() { umpctl get "run/$1" -o 'jsonpath={.status.sandbox.container}'; }
endpoint_of() { umpctl get "run/$1" -o 'jsonpath={.status.sandbox.endpoint}'; }
running() { in_phase "$1" Running && [ -n "$(sandbox_of "$1")" ]; }
# The sandbox's files as the host sees them.
root_of() { echo "/proc/$(engine_api GET "/containers/$(sandbox_of "$1")/json" | jq -r .State.Pid)/root"; }

# What arrived anywhere from a sandbox, or from the host for it. The lab's own traffic has none.
arrivals() { "$LAB_SH" arrivals "$ATTACK_LAB" | sed '/ error /d'; }
forget() { "$LAB_SH" forget "$ATTACK_LAB"; }
nothing_arrived() { # NAME
  local got; got=$(arrivals)
  if [ -z "$got" ]; then ok "$1: nothing arrived anywhere"; else bad "$1: nothing arrived anywhere" "$got"; fi
}

# umpd's memory in KiB.
umpd_memory() { awk '/^VmRSS:/ { print $2 }' "/proc/$umpd_pid/status"; }
umpd_lives() { # NAME
  if kill -0 "$umpd_pid" 2>/dev/null && umpctl get --raw /readyz >/dev/null 2>&1; then ok "$1: umpd is up and ready"; else bad "$1: umpd is up and ready" "$(tail -5 "$D.log")"; fi
}
# says NAME RUN REGEX: what the run's script printed (!REGEX = must not).
says() {
  output "$2" >"$WORK/says" 2>&1
  if [ "${3:0:1}" = '!' ]; then
    if grep -qE -- "${3:1}" "$WORK/says"; then bad "$1" "must not match ${3:1}:
$(grep -E -- "${3:1}" "$WORK/says")"; else ok "$1"; fi
  elif grep -qE -- "$3" "$WORK/says"; then ok "$1"; else bad "$1" "does not match $3:
$(tail -15 "$WORK/says")"; fi
}
