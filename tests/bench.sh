#!/usr/bin/env bash
# Figures, each as a ratio against a named alternative in the same run. Never a gate: exit 0 unless
# something could not be measured at all. --smoke runs each once, to show that it works.
#
# A row: the medians of 20 interleaved pairs after a warm-up, the median of the pairwise ratios, and
# its 95 % interval (the 6th and 15th of 20 sorted ratios). A delay: the median, p99 and the slowest.
. "$(dirname "$0")/e2e/lib.sh"
trap 'finish >/dev/null; exit $rc' EXIT
rc=0
pairs=20 warm=3 idle=120
[ "${1:-}" != --smoke ] || { pairs=1 warm=1 idle=10; }

milliseconds() { # COMMAND…: wall time of one run, in hundredths
  local begin=${EPOCHREALTIME/[^0-9]/}
  "$@" >/dev/null 2>&1 || { echo "bench: failed: $*" >&2; rc=1; return 1; }
  echo $(((${EPOCHREALTIME/[^0-9]/} - begin) / 10))
}

SORTED='function sorted(x, n,   i, j, t) { for (i = 2; i <= n; i++) for (j = i; j > 1 && x[j-1] > x[j]; j--) { t = x[j]; x[j] = x[j-1]; x[j-1] = t } }
  function median(x, n) { return n % 2 ? x[(n+1)/2] : (x[n/2] + x[n/2+1]) / 2 }'

compare() { # NAME ALTERNATIVE A B: functions or commands that print hundredths of milliseconds
  local name=$1 other=$2 i
  for i in $(seq $warm); do $3 >/dev/null && $4 >/dev/null || return; done
  for i in $(seq $pairs); do echo "$($3) $($4)"; done |
    awk -v name="$name" -v other="$other" "$SORTED"'
      NF == 2 { n++; a[n] = $1 / 100; b[n] = $2 / 100; r[n] = $2 > 0 ? $1 / $2 : 0 }
      END { if (!n) exit 1
        sorted(a, n); sorted(b, n); sorted(r, n)
        low = 1; high = n; if (n >= 20) { low = 6; high = 15 }
        printf "%-34s %8.2f ms   %-22s %8.2f ms   ratio %.2f  [%.2f, %.2f]  n=%d\n", name, median(a, n), other, median(b, n), median(r, n), r[low], r[high], n }' || rc=1
}

row() { # NAME ALTERNATIVE -- A… -- B…: wall time
  local name=$1 other=$2; shift 3
  local a=()
  while [ "$1" != -- ]; do a+=("$1"); shift; done
  shift
  compare "$name" "$other" "milliseconds ${a[*]}" "milliseconds $*"
}

delay() { # NAME TRIALS COMMAND: it prints hundredths of milliseconds
  local i
  for i in $(seq "$2"); do $3; done |
    awk -v name="$1" "$SORTED"'{ a[NR] = $1 / 100 } END { if (!NR) exit 1
      sorted(a, NR); p99 = int(NR * 0.99 + 0.999)
      printf "%-34s median %.1f ms   p99 %.1f ms   slowest %.1f ms   n=%d\n", name, median(a, NR), a[p99], a[NR], NR }' || rc=1
}

export RUNS_MAX_CONCURRENT=60
start_umpd "$WORK/data" || { rc=1; exit 1; }
umpctl apply -f examples/jobs/ >/dev/null
umpctl patch job heartbeat -p '{"spec":{"suspend":true}}' >/dev/null   # it would start runs meanwhile
echo "$(uname -srm), $(nproc) processors, $(awk '/MemTotal/{printf "%.0f GiB", $2/1048576}' /proc/meminfo)"
if command -v kubectl >/dev/null; then
  export HOME=$WORK
  row "umpctl get jobs" "kubectl get jobs" -- umpctl get jobs -- kubectl get jobs.umpteenth.dev
  row "umpctl apply, unchanged" "kubectl apply" -- umpctl apply -f examples/jobs/ -- kubectl apply -f examples/jobs/
else
  echo "SKIPPED: umpctl against kubectl: kubectl is not installed"
fi

# What umpd costs while nothing happens: jobs are declared, the engine is watched, no run is on.
ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$umpd_pid/stat"; }
idle_cost() {
  local before; before=$(ticks)
  sleep $idle
  awk -v used=$(($(ticks) - before)) -v hz="$(getconf CLK_TCK)" -v seconds=$idle -v kib="$(awk '/^Pss:/ { print $2 }' "/proc/$umpd_pid/smaps_rollup")" \
    'BEGIN { printf "%-34s %.3f %% of a core over %d s   PSS %.1f MiB\n", "umpd idle", used / hz / seconds * 100, seconds, kib / 1024 }'
}
idle_cost || rc=1

# Sandboxes, on both ways of meeting the broker: one engine under two names.
trials=200; [ $pairs -gt 1 ] || trials=2
{
  for how in namespace network; do
    printf -- '---\napiVersion: umpteenth.dev/v1alpha1\nkind: SandboxEngine\nmetadata: {name: %s}\nspec: {endpoint: "unix://%s", image: "%s", attachment: %s}\n' $how "$ENGINE" "$IMAGE" $how
    printf -- '---\napiVersion: umpteenth.dev/v1alpha1\nkind: Job\nmetadata: {name: on-%s}\nspec:\n  instruction: bench\n  model: {provider: bench, name: scripted}\n  network: {mode: None}\n  sandbox: {engine: %s}\n' $how $how
  done
  printf -- '---\napiVersion: umpteenth.dev/v1alpha1\nkind: ModelProvider\nmetadata: {name: bench}\nspec:\n  type: Scripted\n  models: [{name: scripted}]\n  script:\n    - call: {tool: bash, arguments: {command: "{{input.command}}", timeout_seconds: 600}}\n    - match: {tool: bash}\n      call: {tool: finish, arguments: {status: success, summary: done}}\n'
} | umpctl apply -f - >/dev/null || rc=1
run_of() { umpctl run "$1" --input "{\"command\": \"$2\"}" -o name | sed 's|.*/||'; }   # JOB COMMAND
field() { umpctl get "run/$1" -o "jsonpath={.status.$2}"; }
until_phase() { # RUN PHASE
  local deadline=$((SECONDS + 60))
  until [ "$(phase "$1")" = "$2" ]; do [ $SECONDS -lt $deadline ] || { echo "bench: $1 is not $2" >&2; return 1; }; sleep 0.02; done
}
ready_on() { # ATTACHMENT: from the sandbox's making to its first command
  local run; run=$(run_of "on-$1" true); until_phase "$run" Succeeded && echo $(($(field "$run" durations.provisionMs) * 100))
}
# From the engine's being asked to remove the sandbox to the Failed on the run's timeline.
gone_on() { # ATTACHMENT
  local run container at; run=$(run_of "on-$1" "sleep 600")
  until_phase "$run" Running || return
  container=$(field "$run" sandbox.container)
  at=$((${EPOCHREALTIME/[^0-9]/} / 1000))
  engine_api DELETE "/containers/$container?force=1" >/dev/null
  until_phase "$run" Failed || return
  echo $((($(date -d "$(umpctl timeline "run/$run" -o json | jq -r 'select(.type == "run.status" and .phase == "Failed") | .time')" +%s%3N) - at) * 100))
}
compare "sandbox ready, attachment namespace" "attachment network" "ready_on namespace" "ready_on network"
for how in namespace network; do delay "removed sandbox to Failed, $how" $trials "gone_on $how"; done

# Many at once, until half of them are ready; the bare engine with as many starts at a time as umpd.
many=50; [ $pairs -gt 1 ] || many=4
printf -- 'apiVersion: umpteenth.dev/v1alpha1\nkind: Job\nmetadata: {name: many}\nspec:\n  instruction: bench\n  model: {provider: bench, name: scripted}\n  network: {mode: None}\n  schedule: {cron: "0 0 1 1 *", overlapPolicy: Parallel}\n' | umpctl apply -f - >/dev/null || rc=1
at_once() { umpctl patch workspace default -p "{\"spec\":{\"limits\":{\"maxConcurrentRuns\":$1}}}" >/dev/null; }
median_of() { sort -n | awk '{ a[NR] = $1 } END { if (!NR) exit 1; print int(a[int((NR + 1) / 2)] * 100) }'; }   # of milliseconds
many_runs() {
  local blocker begin run runs=() ready
  at_once 1
  blocker=$(run_of on-namespace "sleep 600"); until_phase "$blocker" Running || return
  for _ in $(seq $many); do runs+=("$(run_of many "sleep 600")"); done
  begin=$((${EPOCHREALTIME/[^0-9]/} / 1000))
  at_once 60
  for run in "${runs[@]}"; do
    until_phase "$run" Running || return
    ready=$(umpctl timeline "run/$run" -o json | jq -r 'select(.type == "sandbox.create") | .time')
    echo $(($(date -d "$ready" +%s%3N) - begin))
  done | median_of
  for run in "$blocker" "${runs[@]}"; do umpctl cancel "run/$run" >/dev/null; done
  for run in "$blocker" "${runs[@]}"; do until_phase "$run" Cancelled; done
}
one_bare() { # BEGIN: a container like a sandbox
  local id; id=$(engine_api POST /containers/create -H 'Content-Type: application/json' -d "$BARE" | jq -r .Id)
  engine_api POST "/containers/$id/start" >/dev/null
  echo $((${EPOCHREALTIME/[^0-9]/} / 1000 - $1)) "$id"
}
export -f one_bare engine_api; export ENGINE BARE
many_bare() {
  local image; image=$(engine_api GET '/images/json?filters=%7B%22label%22%3A%5B%22umpteenth.role%3Dprepared%22%5D%7D' | jq -r '.[0].Id')
  BARE=$(jq -nc --arg i "$image" '{Image: $i, User: "0:0", Entrypoint: ["/usr/local/bin/ump", "init", "--ttl", "10m"], HostConfig: {NetworkMode: "none", CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"], Memory: 1073741824, MemorySwap: 1073741824, NanoCpus: 1000000000, PidsLimit: 256}}')
  seq $many | xargs -P 3 -I{} bash -c "one_bare $((${EPOCHREALTIME/[^0-9]/} / 1000))" >"$WORK/bare"
  cut -d' ' -f1 "$WORK/bare" | median_of
  cut -d' ' -f2 "$WORK/bare" | while read -r id; do engine_api DELETE "/containers/$id?force=1" >/dev/null; done
}
[ $pairs -eq 1 ] || { pairs=5; warm=1; }   # a minute each
compare "$many sandboxes at once, half ready" "bare engine, 3 at a time" many_runs many_bare
tests/bench/proxies.sh ${1:+"$1"} || rc=1
