#!/usr/bin/env bash
# Runs and what can happen to them: limits, overlaps, schedules, secrets, state, lost sandboxes,
# deletion, another workspace's token, leftovers of a killed umpd.
. "$(dirname "$0")/lib.sh"
. tests/e2e/jobs.sh

D=$WORK/data
start_umpd "$D" || { bad "umpd starts"; exit 1; }
umpctl patch workspace default -p '{"spec":{"limits":{"maxConcurrentRuns":20}}}' >/dev/null

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
firewall() { umpctl get sandboxengine default -o "jsonpath={.status.conditions[?(@.type==\"EgressFirewall\")]['status','reason']}"; }
firewall_is() { firewall | grep -qE "$1"; }
eventually "the egress firewall is enforced" 30 firewall_is 'True.*Enforced'
runs_to "Internet mode runs, and the host is out of its reach" internet 'gw=$(ip route | awk "/^default/ { print \$3 }"); ump netcheck --timeout 1s --unreachable "icmp:$gw" >/dev/null && echo out' '^Succeeded .*out'
expect "its rules are shown" 0 '-j UMPTEENTH-PRIVATE' umpctl engine status
expect "and that nothing is to be done" 0 '^  nothing$' umpctl plan sandboxengine/default
expect "they are not taken out while they are wanted" 1 'set it to off' umpctl engine firewall remove
umpctl patch sandboxengine default -p '{"spec":{"egressFilter":"off"}}' >/dev/null
expect "they are then" 0 'UMPTEENTH' umpctl engine firewall remove
runs_to "and with egressFilter off" internet 'echo out' '^Succeeded .*out'
eventually "which the status says" 10 firewall_is 'False.*TurnedOff'
umpctl patch sandboxengine default -p '{"spec":{"egressFilter":"auto"}}' >/dev/null

# Overlaps, numbers, deletion.
hold='for i in $(seq 600); do sleep 0.1; done'
one=$(start skip "$hold"); two=$(start skip true)
ends "Skip skips" $patience "$two" "^Skipped Overlap Skipped because another run of this job was still active: run/$one"
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
expect "get jobs shows that it is being deleted" 0 '^sh .* Deleting ' umpctl get jobs
expect "who waits for it is told what holds it" 1 "waiting for run/$a to end \(umpctl cancel run/$a ends it\)" umpctl delete job sh --timeout=3s
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
strangers=()   # containers of others
for labels in '{}' '{"umpteenth.instance":"another","umpteenth.role":"sandbox"}'; do
  strangers+=("$(curl -sS --unix-socket "$ENGINE" -H 'Content-Type: application/json' -X POST http://engine/containers/create --data "{\"Image\":\"$IMAGE\",\"Cmd\":[\"true\"],\"Labels\":$labels}" | jq -r .Id)")
done
start_umpd "$D" || { bad "umpd starts again"; exit 1; }
ends "its run is failed as interrupted" $patience "$left" '^Failed Interrupted interrupted: '
eventually "its sandbox is removed" $patience no_sandbox "$left"
there=0
for id in "${strangers[@]}"; do engine_api GET "/containers/$id/json" | grep -q '"Id"' && there=$((there + 1)); engine_api DELETE "/containers/$id?force=1" >/dev/null; done
[ $there = 2 ] && ok "containers of others stay" || bad "containers of others stay" "$there of 2"
leaves() { left_of "$(cat "$D/instance")" | grep -vE 'relay|ump-egress|-(probe|firewall)$'; }
none_left() { [ -z "$(leaves)" ]; }
eventually "its network too" $patience none_left
stop_umpd 12
none_left && ok "nothing is left on the engine" || bad "nothing is left on the engine" "$(leaves)"
