#!/usr/bin/env bash
# Runs and what can happen to them: limits, overlaps, schedules, secrets, state, lost sandboxes, a
# stopped engine, deletion, a full disk, another workspace's token, leftovers of a killed umpd.
. "$(dirname "$0")/lib.sh"

D=$WORK/data
own=$WORK/own-engine   # an engine that may be stopped
shared=$ENGINE
small=$WORK/small      # a disk that may be full
patience=90            # seconds that nothing takes on an idle machine
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
start_umpd "$D" || { bad "umpd starts"; exit 1; }
umpctl patch workspace default -p '{"spec":{"limits":{"maxConcurrentRuns":20}}}' >/dev/null

# One provider does what the run's input says, one goes on for ever, one costs a dollar a call.
providers() {
  cat <<'YAML'
apiVersion: umpteenth.dev/v1alpha1
kind: ModelProvider
metadata: {name: sh}
spec:
  type: Scripted
  models: [{name: scripted}]
  script:
    - match: {llm: true}
      repeat: true
      say: the model was asked
    - match: {turn: 1}
      call: {tool: bash, arguments: {command: '{{input.command}}', timeout_seconds: 60}}
    - match: {tool: bash, failed: false}
      call: {tool: finish, arguments: {status: success, summary: '{{result}}'}}
    - match: {tool: bash, failed: true}
      call: {tool: finish, arguments: {status: failure, summary: '{{result}}'}}
---
apiVersion: umpteenth.dev/v1alpha1
kind: ModelProvider
metadata: {name: endless}
spec:
  type: Scripted
  models: [{name: scripted, price: {inputPerMTok: 1000}}]
  script:
    - repeat: true
      usage: {inputTokens: 1000}
      call: {tool: bash, arguments: {command: 'true'}}
---
apiVersion: umpteenth.dev/v1alpha1
kind: ModelProvider
metadata: {name: printer}
spec:
  type: Scripted
  models: [{name: scripted}]
  script:
    - call: {tool: bash, arguments: {command: 'yes this-is-printed-for-ever', timeout_seconds: 3}}
    - match: {failed: true}
      call: {tool: finish, arguments: {status: failure, summary: ended at its time}}
YAML
}
job() { # NAME PROVIDER [more lines of the spec]
  printf -- '---\napiVersion: umpteenth.dev/v1alpha1\nkind: Job\nmetadata: {name: %s}\nspec:\n  instruction: as the script says\n  model: {provider: %s, name: scripted}\n' "$1" "$2"
  grep -q '^network:' <<<"$(printf '%s\n' "${@:3}")" || printf '  network: {mode: None}\n'
  [ $# -lt 3 ] || printf '  %s\n' "${@:3}"
}
{ providers
  job sh sh 'schedule: {cron: "0 0 1 1 *", overlapPolicy: Parallel}'
  job skip sh 'schedule: {cron: "0 0 1 1 *", overlapPolicy: Skip}'
  job queue sh 'schedule: {cron: "0 0 1 1 *", overlapPolicy: Queue}'
  job slow sh 'limits: {timeoutSeconds: 30}'
  job turns endless 'limits: {maxTurns: 3, maxCostUSD: 0}'
  job cost endless 'limits: {maxTurns: 50, maxCostUSD: 2}'
  job printer printer
  job oom sh 'sandbox: {resources: {memoryMiB: 64}}'
  job root sh 'sandbox: {runAsRoot: true}'
  job secret sh 'secrets: [{secret: token, env: TOKEN}, {secret: absent, env: ABSENT}]'
  job internet sh 'network: {mode: Internet}'
  job image sh 'sandbox: {image: "umpteenth-no-such-image:latest"}'
  job keeps sh 'history: {successful: 2}'
  job every sh 'schedule: {cron: "* * * * *"}'
  printf -- '---\napiVersion: umpteenth.dev/v1alpha1\nkind: Secret\nmetadata: {name: token}\nspec: {stringData: {value: secret-of-the-run-4711}}\n'
} >"$WORK/jobs.yaml"
expect "the jobs" 0 'created' umpctl apply -f "$WORK/jobs.yaml"

start() { umpctl run "$1" --input "$(jq -nc --arg c "${2:-true}" '{command:$c}')" -o name 2>>"$WORK/start" | sed 's|.*/||'; }
ended() { case $(phase "$1") in Succeeded | Failed | TimedOut | Cancelled | Skipped) ;; *) return 1 ;; esac; }
told() { umpctl get "run/$1" -o "jsonpath={.status.phase} {.status.reason} {.status.message} {.status.summary} {.status.outputs}"; }
ends() { # NAME SECONDS RUN REGEX of phase, reason, message, summary and outputs
  local deadline=$((SECONDS + $2)) text
  until ended "$3"; do
    [ $SECONDS -lt $deadline ] || { bad "$1" "run $3 goes on: $(told "$3")"; return 1; }
    sleep 0.1
  done
  text=$(told "$3")
  grep -qE -- "$4" <<<"$text" && ok "$1" || bad "$1" "not $4: $text"
}
runs_to() { ends "$1" $patience "$(start "$2" "$3")" "$4"; } # NAME JOB COMMAND REGEX
sandbox_of() { umpctl get "run/$1" -o 'jsonpath={.status.sandbox.container}'; }
no_sandbox() { ! engine_api GET '/containers/json?all=1' | grep -q "\"umpteenth.run-name\":\"$1\""; }
at_work() { in_phase "$1" Running && umpctl timeline "run/$1" | grep -q tool.call; }

# What takes its time runs beside the rest.
slow=$(start slow 'sleep 300')

# Limits.
runs_to "a command's output comes back" sh 'echo from the sandbox; id -u' '^Succeeded Finished .*from the sandbox'
ends "the turn limit" $patience "$(start turns)" '^Failed AgentFailed the run exceeded its limit of 3 turns'
ends "the cost limit" $patience "$(start cost)" '^Failed AgentFailed the run exceeded its cost limit of \$2.00'
expect "and it cost what it cost" 0 '^[2-3](\.|$)' umpctl get "$(umpctl get runs -l umpteenth.dev/job=cost -o name)" -o 'jsonpath={.status.costUSD}'
runs_to "too much memory" oom 'dd if=/dev/zero of=/dev/null bs=200M count=1' '^Failed .*memory'
runs_to "an image that is not there" image true '^Failed SandboxFailed Failed to create the sandbox: image umpteenth-no-such-image:latest'
before=$(du -sm "$D" | cut -f1)
printer=$(start printer)
ends "a command that prints for ever is ended at its time" $patience "$printer" '^Failed .*ended at its time'
[ $(($(du -sm "$D" | cut -f1) - before)) -lt 40 ] && ok "and fills no disk" || bad "and fills no disk" "$(du -sm "$D") MiB after $before"
[ "$(awk '/^VmHWM/ {print $2}' "/proc/$umpd_pid/status")" -lt 400000 ] && ok "and no memory" || bad "and no memory" "$(grep VmHWM "/proc/$umpd_pid/status")"

# What the sandbox is and is given.
runs_to "the agent's user is not root" sh 'test "$(id -u)" != 0 && echo not root' '^Succeeded .*not root'
runs_to "runAsRoot is" root 'id -u' '^Succeeded Finished +0'
reader=$(start secret 'test "$TOKEN" = "secret-of-the-run-""4711" && test -z "$ABSENT" && echo the token came; sleep 3')
eventually "a run with a secret is at work" $patience at_work "$reader"
engine_api GET "/containers/$(sandbox_of "$reader")/json" >"$WORK/inspect"
grep -q '"Id"' "$WORK/inspect" && ! grep -q secret-of-the-run "$WORK/inspect" && ok "docker inspect shows no secret" || bad "docker inspect shows no secret" "$(head -c 300 "$WORK/inspect")"
jq -e '.HostConfig | .ReadonlyRootfs != null and (.CapDrop | index("ALL")) and (.Privileged | not)' "$WORK/inspect" >/dev/null && ok "all capabilities are dropped" || bad "all capabilities are dropped"
ends "the secret reaches the command" $patience "$reader" '^Succeeded .*the token came'
expect "the absent one is noted" 0 'absent' umpctl timeline "run/$reader"
grep -raq secret-of-the-run-4711 "$D" "$D.log" && bad "the secret's value is in no file" || ok "the secret's value is in no file"
ump_cli='set -e
n=$(ump state get n || echo 0); ump state set n $((n + 1)); ump output set n $((n + 1))
ump step counted; ump llm --max-tokens 50 "well?"; ump state list'
runs_to "ump from inside" sh "$ump_cli" '"n": *1\}$'
cli=$(newest_run sh)
expect "ump's step is on the timeline" 0 'counted' umpctl timeline "run/$cli"
expect "ump llm got its answer" 0 'the model was asked' umpctl logs "run/$cli"
runs_to "state is kept from run to run" sh "$ump_cli" '"n": *2\}$'
runs_to "ump fail" sh 'ump fail the data is bad || true' '^Failed ReportedFailure the data is bad'
artifact=$(start sh 'echo kept >/ump/outputs/a.txt; ln -s /etc/passwd /ump/outputs/link; mkfifo /ump/outputs/fifo; echo done')
ends "a run that leaves a link and a fifo" $patience "$artifact" '^Succeeded'
expect "its file is kept" 0 'a.txt' umpctl artifacts "run/$artifact"
expect "the others are refused" 0 'artifact refused: .*(link|fifo)' umpctl timeline "run/$artifact"
expect "and not listed" 0 '!(link|fifo)' umpctl artifacts "run/$artifact"
runs_to "Internet mode is refused" internet true '^Failed Refused network mode Internet is refused on sandbox engine default: .*egressFilter: off'
expect "the engine says why" 0 'False.*NotInstalled' umpctl get sandboxengine default -o "jsonpath={.status.conditions[?(@.type==\"EgressFirewall\")]['status','reason']}"
umpctl patch sandboxengine default -p '{"spec":{"egressFilter":"off"}}' >/dev/null
runs_to "unless egressFilter is off" internet 'echo out' '^Succeeded .*out'
expect "which the status says" 0 'False.*NotInstalled' umpctl get sandboxengine default -o "jsonpath={.status.conditions[?(@.type==\"EgressFirewall\")]['status','reason']}"
umpctl patch sandboxengine default -p '{"spec":{"egressFilter":"auto"}}' >/dev/null

# Overlaps, numbers, deletion.
hold='for i in $(seq 600); do sleep 0.1; done'
one=$(start skip "$hold"); two=$(start skip true)
ends "Skip skips" $patience "$two" '^Skipped Overlap Skipped because another run of this job was still active'
first=$(start queue "$hold"); second=$(start queue true)
eventually "Queue's first run is at work" $patience at_work "$first"
in_phase "$second" Queued && ok "Queue lets the second wait" || bad "Queue lets the second wait" "$(told "$second")"
umpctl cancel "run/$first" >/dev/null
ends "the first is cancelled" $patience "$first" '^Cancelled Cancelled'
ends "then the second runs" $patience "$second" '^Succeeded'
a=$(start sh "$hold"); b=$(start sh "$hold")
both() { at_work "$a" && at_work "$b"; }
eventually "Parallel runs two at once" $patience both
umpctl patch workspace default -p '{"spec":{"limits":{"maxConcurrentRuns":1}}}' >/dev/null
c=$(start sh true)
sleep 0.5
in_phase "$c" Queued && ok "beyond the workspace's limit a run waits" || bad "beyond the workspace's limit a run waits" "$(told "$c")"
expect "deleting a job with runs" 0 '' umpctl delete job sh --wait=false
ends "cancels what waits" $patience "$c" '^Cancelled .*Cancelled before it started'
both && ok "and lets go on what runs" || bad "and lets go on what runs" "$(told "$a"), $(told "$b")"
expect "the job stays meanwhile" 0 'deletionTimestamp' umpctl get job sh -o yaml
expect "and starts nothing" 1 'being deleted' umpctl run sh
umpctl patch workspace default -p '{"spec":{"limits":{"maxConcurrentRuns":20}}}' >/dev/null
umpctl cancel "run/$b" >/dev/null

# A sandbox that dies.
begin=$(date +%s%N)
engine_api DELETE "/containers/$(sandbox_of "$a")?force=1" >/dev/null
ends "a sandbox that dies ends its run" $patience "$a" '^Failed SandboxGone sandbox is gone'
took=$((($(date +%s%N) - begin) / 1000000))
allowed=$((3000 + 1000 * $(cut -d. -f1 /proc/loadavg) / $(nproc)))   # a busy machine is slower
[ $took -lt $allowed ] && ok "soon" || bad "soon" "$took ms"
eventually "the job goes with its last run" $patience umpctl wait job/sh --for=delete --timeout=1s
expect "its records stay" 0 "$a" umpctl get runs
umpctl apply -f "$WORK/jobs.yaml" >/dev/null
umpctl cancel "run/$one" >/dev/null

# History and schedule.
for _ in 1 2 3; do last=$(start keeps true); ends "a run to be kept or not" $patience "$last" '^Succeeded'; done
two_kept() { [ "$(umpctl get runs -l umpteenth.dev/job=keeps -o name | wc -l)" = 2 ]; }
eventually "history keeps two" $patience two_kept
ends "the timeout ends a run" 60 "$slow" '^TimedOut Timeout the run exceeded its time limit'
eventually "with its sandbox" $patience no_sandbox "$slow"
fired() { umpctl get runs -l umpteenth.dev/job=every -o 'jsonpath={.items[*].spec.trigger}' | grep -q Schedule; }
eventually "a schedule fires" 70 fired
umpctl delete job every --wait=false >/dev/null

# Another workspace and a member's token.
server=$(sed -n 's/^ *server: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$KUBECONFIG" | head -1)
printf 'header = "Authorization: Bearer %s"\n' "$(sed -n 's/^ *token: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$KUBECONFIG" | head -1)" >"$WORK/curlrc"
printf 'apiVersion: umpteenth.dev/v1alpha1\nkind: Workspace\nmetadata: {name: web}\nspec: {displayName: Web}\n' >"$WORK/web.yaml"
expect "a second workspace" 0 created umpctl apply -f "$WORK/web.yaml"
token=$(curl -sk -K "$WORK/curlrc" -X POST "$server/umpteenth/v1alpha1/tokens" -H 'Content-Type: application/json' --data '{"name":"m","role":"Member","workspaces":["web"]}' | jq -r .token)
m() { umpctl --token "$token" -n "${ns:-web}" "$@"; }
job theirs sh | tail -n +2 >"$WORK/theirs.yaml"
expect "a member makes a job" 0 created m apply -f "$WORK/theirs.yaml"
expect "a member reads it" 0 theirs m get jobs
expect "a member makes no provider" 1 'forbidden' m apply -f <(providers)
expect "a member changes no engine" 1 'Forbidden' m patch sandboxengine default -p '{"spec":{"egressFilter":"off"}}'
expect "a member makes no workspace" 1 'forbidden' m apply -f <(sed 's/web/other/' "$WORK/web.yaml")
ns=default expect "nor reads another workspace's jobs" 1 'Forbidden' m get jobs
ns=default expect "nor its secrets" 1 'Forbidden' m get secrets
ns=default expect "nor starts its runs" 1 'Forbidden' m run turns
ns=default expect "nor reads its runs' timelines" 1 'Forbidden' m timeline "run/$cli"
expect "of all workspaces, only its own" 0 '!default' m get jobs -A
expect "and makes no token" 0 '"code":403' curl -sk -H "Authorization: Bearer $token" -X POST "$server/umpteenth/v1alpha1/tokens" -H 'Content-Type: application/json' --data '{"name":"n","role":"Member","workspaces":["web"]}'
raw=$(curl -sk -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "$server/apis/umpteenth.dev/v1alpha1/namespaces/default/runs/$cli/log")
[ "$raw" = 403 ] && ok "by no other path" || bad "by no other path" "$raw"

# What a killed umpd leaves is removed at the next start; what is not ours stays.
left=$(start turns true); left=$(start secret "$hold")
eventually "a run is at work" $patience at_work "$left"
kill -9 $umpd_pid; wait $umpd_pid 2>/dev/null
no_sandbox "$left" && bad "kill -9 leaves a sandbox" || ok "kill -9 leaves a sandbox"
strangers=()
for labels in '{}' '{"umpteenth.instance":"another","umpteenth.role":"sandbox"}'; do
  strangers+=("$(curl -sS --unix-socket "$ENGINE" -H 'Content-Type: application/json' -X POST http://engine/containers/create --data "{\"Image\":\"$IMAGE\",\"Cmd\":[\"true\"],\"Labels\":$labels}" | jq -r .Id)")
done
start_umpd "$D" || { bad "umpd starts again"; exit 1; }
ends "its run is failed as interrupted" $patience "$left" '^Failed Interrupted interrupted: '
eventually "its sandbox is removed" $patience no_sandbox "$left"
there=0
for id in "${strangers[@]}"; do engine_api GET "/containers/$id/json" | grep -q '"Id"' && there=$((there + 1)); engine_api DELETE "/containers/$id?force=1" >/dev/null; done
[ $there = 2 ] && ok "containers of others stay" || bad "containers of others stay" "$there of 2"
stop_umpd 12
[ -z "$(left_of "$(cat "$D/instance")" | grep -vE 'relay|ump-egress')" ] && ok "nothing is left on the engine" || bad "nothing is left on the engine" "$(left_of "$(cat "$D/instance")")"

# A full disk.
mkdir "$small"
if mount -t tmpfs -o size=24m,mode=0700 tmpfs "$small" 2>/dev/null; then
  start_umpd "$small/data" || bad "umpd starts on a small disk"
  expect "it writes" 0 created umpctl apply -f "$WORK/theirs.yaml"
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
  umpctl delete job every --wait=false >/dev/null
  alive=$(start secret 'for i in $(seq 60); do echo $i; sleep 0.1; done; echo got through')
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
