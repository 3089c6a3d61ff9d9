#!/usr/bin/env bash
# What a person does with a job, from apply to delete, with umpctl and with kubectl.
. "$(dirname "$0")/lib.sh"

D=$WORK/data
start_umpd "$D" || { bad "umpd starts"; exit 1; }
ok "umpd starts"

expect "apply of all examples" 0 'job.umpteenth.dev/hello created' umpctl apply -f examples/jobs/
expect "apply again changes nothing" 0 '!(created|configured)' umpctl apply -f examples/jobs/
expect "get jobs has the documented columns" 0 '^NAME +SCHEDULE +NETWORK +LAST +NEXT +READY +AGE' umpctl get jobs
expect "get jobs shows hello" 0 '^hello ' umpctl get jobs
expect "get jobs -o wide adds columns" 0 'IMAGE +MODEL +TIMEOUT' umpctl get jobs -o wide
expect "no-headers leaves out the heads of custom columns" 0 '!^N$' umpctl get jobs --no-headers -o custom-columns=N:.metadata.name
completed() { (source <(umpctl completion bash); COMP_WORDS=(umpctl describe job/hel); COMP_CWORD=2; _umpctl; echo "${COMPREPLY[*]}"); }
expect "the shell completes the name of a job" 0 '^job/hello$' completed
expect "label" 0 'job.umpteenth.dev/hello labeled$' umpctl label job hello team=web
expect "label -" 0 'job.umpteenth.dev/hello unlabeled$' umpctl label job hello team-
frob() { umpctl auth can-i frob jobs 2>&1 >/dev/null; true; }
expect "can-i warns of a verb that there is not" 0 "^Warning: verb 'frob' is not a known verb$" frob
expect "can-i of one that there is" 0 '^yes$' umpctl auth can-i list jobs
expect "get job -o json" 0 '"kind": "Job"' umpctl get job/hello -o json
expect "an unknown job" 1 'Error from server \(NotFound\): jobs.umpteenth.dev "nope" not found' umpctl get job nope
expect "an unknown job does not hide the others" 1 '^hello ' umpctl get job nope hello
expect "and is named" 1 '^Error from server \(NotFound\): jobs.umpteenth.dev "nope" not found$' umpctl get job hello nope -o name
eventually "hello becomes Ready" 20 umpctl wait job/hello --for=condition=Ready --timeout=1s

expect "run hello to its outputs" 0 'Succeeded' umpctl run hello --input '{"n":3}' --follow
run=$(newest_run hello)
expect "the outputs are kept" 0 '.' umpctl get "run/$run" -o 'jsonpath={.status.outputs}'
outputs=$(umpctl get "run/$run" -o 'jsonpath={.status.outputs}')
[ "$(jq 'length > 0' <<<"$outputs")" = true ] && ok "outputs are not empty" || bad "outputs are not empty" "$outputs"
expect "artifacts are listed" 0 'sha256|[0-9a-f]{64}' umpctl artifacts "run/$run"
expect "artifacts are fetched" 0 "$WORK/out/" umpctl artifacts "run/$run" -o "$WORK/out"
[ -n "$(find "$WORK/out" -type f -size +0c)" ] && ok "an artifact has bytes" || bad "an artifact has bytes"
expect "the timeline tells its calls" 0 'tool.call' umpctl timeline "run/$run"
expect "timeline -o json is JSON lines" 0 '"type":"finish"' umpctl timeline "run/$run" -o json
expect "a job's name where a run's belongs" 1 'say job/hello for its newest run' umpctl timeline hello
expect "logs show command output" 0 '.' umpctl logs "run/$run"
expect "describe job" 0 '^Events:' umpctl describe job hello
expect "events of a run" 0 "Normal +Succeeded +run/$run" umpctl events --for "run/$run"
expect "describe run" 0 'Succeeded' umpctl describe run "$run"
expect "get runs columns" 0 '^NAME +JOB +PHASE +TRIGGER +AGE +DURATION +COST' umpctl get runs
expect "field selector" 0 "$run" umpctl get runs --field-selector status.phase=Succeeded
expect "label selector" 0 "$run" umpctl get runs -l umpteenth.dev/job=hello

expect "a run that has ended cannot be cancelled" 1 "run/$run has already ended: Succeeded" umpctl cancel "run/$run"
told() { umpctl describe job hello | grep -q "RunSucceeded.*run $run succeeded"; }
eventually "describe job tells of its runs" 10 told
expect "an input that is not declared is refused" 1 'spec.input.m: .*does not declare it' umpctl run hello --input '{"m":3}'
expect "the history is the person's alone" 0 '!system:controller' umpctl history job hello
expect "the workspace counts its jobs" 0 '^default +0 +[1-9]' umpctl get workspaces
expect "a model provider is Ready" 0 '^hello-script +Scripted +True +1 ' umpctl get modelproviders

expect "a run fails as its job says" 1 'Failed' umpctl run "$(umpctl get jobs -o name | grep -i fail | head -1 | sed 's|.*/||')" --wait

long=$(umpctl get jobs -o name | grep -iE 'long|sleep|slow' | head -1 | sed 's|.*/||')
umpctl run "$long" >/dev/null
long_run=$(newest_run "$long")
eventually "a long run is running" 30 in_phase "$long_run" Running
expect "cancel" 0 'cancel requested' umpctl cancel "run/$long_run"
eventually "it ends as cancelled" 15 in_phase "$long_run" Cancelled
expect "and cannot be cancelled again" 1 "run/$long_run has already ended: Cancelled" umpctl cancel "run/$long_run"
expect "its timeline says who asked" 0 'Cancelled \(by admin\)' umpctl timeline "run/$long_run"
eventually "its sandbox is gone" 10 sh -c "! curl -sS --unix-socket '$ENGINE' 'http://engine/containers/json?all=1' | grep -q '$long_run'"

sed 's/^  instruction:.*/  instruction: changed once/; /^  instruction:/,/^  [a-z]/{/^    /d}' examples/jobs/hello.yaml >"$WORK/changed.yaml"
first=$(umpctl history job hello -o json | jq -r '.items[0].revision')
expect "diff shows a change and exits with 1" 1 '^\+ .*changed once' umpctl diff -f "$WORK/changed.yaml"
expect "apply configures" 0 'job.umpteenth.dev/hello configured' umpctl apply -f "$WORK/changed.yaml"
expect "diff is empty after apply" 0 '' umpctl diff -f "$WORK/changed.yaml"
expect "history names actor and change" 0 'admin' umpctl history job hello
expect "get --at shows the old text" 0 '!changed once' umpctl get job hello --at "$first" -o yaml
expect "rollback" 0 "rolled back to $first" umpctl rollback job hello --to "$first"
expect "the old text is back" 0 '!changed once' umpctl get job hello -o yaml
expect "history names the rollback" 0 "roll back jobs/default/hello to $first" umpctl history job hello
umpctl delete job hello >/dev/null
expect "rollback of a deleted job" 0 "restored as it was at $first" umpctl rollback job hello --to "$first"
expect "restores it" 0 '^hello ' umpctl get job hello
expect "rollback to what is no revision" 1 'error|Error' umpctl rollback job hello --to 999999999

timeout 120 umpctl get runs -w >"$WORK/watch" 2>&1 &
watcher=$!
sleep 0.5
expect "a run to be watched" 0 '' umpctl run hello --wait
watched=$(newest_run hello)
for _ in $(seq 100); do grep -q "^$watched .*Succeeded" "$WORK/watch" && break; sleep 0.1; done
kill $watcher; wait $watcher 2>/dev/null
grep -q "^$watched .*Succeeded" "$WORK/watch" && ok "get -w shows the run's phases" || bad "get -w shows the run's phases" "$(cat "$WORK/watch")"

if command -v kubectl >/dev/null; then
  export HOME=$WORK
  expect "kubectl get jobs" 0 '^hello ' kubectl get jobs.umpteenth.dev
  expect "kubectl get by short name" 0 '^hello ' kubectl get uj
  expect "kubectl apply" 0 'job.umpteenth.dev/hello (configured|unchanged)' kubectl apply -f examples/jobs/
  # (Not heartbeat's: it may start a run meanwhile, which its status tells.)
  revisions() { umpctl get job/hello job/log-triage job/csv-pipeline modelprovider/hello-script modelprovider/log-triage-script -o 'jsonpath={.items[*].metadata.resourceVersion}'; }
  before=$(revisions)
  expect "kubectl apply again" 0 '!(created|configured)' kubectl apply -f examples/jobs/
  [ "$(revisions)" = "$before" ] && ok "which changes nothing" || bad "which changes nothing"
  expect "kubectl wait" 0 'condition met' kubectl wait --for=condition=Ready jobs.umpteenth.dev/hello --timeout=10s
  expect "kubectl describe" 0 '^Name: +hello' kubectl describe jobs.umpteenth.dev hello
  timeout 120 kubectl get runs -w >"$WORK/kwatch" 2>&1 &
  watcher=$!
  sleep 1
  umpctl run hello --wait >/dev/null 2>&1
  watched=$(newest_run hello)
  for _ in $(seq 100); do grep -q "^$watched .*Succeeded" "$WORK/kwatch" && break; sleep 0.1; done
  kill $watcher; wait $watcher 2>/dev/null
  grep -q "^$watched .*Succeeded" "$WORK/kwatch" && ok "kubectl get -w" || bad "kubectl get -w" "$(cat "$WORK/kwatch")"
  expect "kubectl delete" 0 'deleted' kubectl delete jobs.umpteenth.dev "$long" --timeout=20s
  expect "kubectl sees it gone" 1 'NotFound' kubectl get jobs.umpteenth.dev "$long"
else
  skip "kubectl" "kubectl is not installed"
fi

expect "delete -f" 0 'job.umpteenth.dev/hello deleted' umpctl delete -f examples/jobs/ --ignore-not-found
expect "nothing is left of the jobs" 0 'No resources found in default namespace.' umpctl get jobs
expect "records of runs stay" 0 "$run" umpctl get runs
git -C "$D/store.git" fsck --full >"$WORK/fsck" 2>&1 && ok "git fsck of the store" || bad "git fsck of the store" "$(cat "$WORK/fsck")"
[ -n "$(git -C "$D/store.git" log --format=%s main -- default/jobs/hello.yaml)" ] && ok "plain git shows the history" || bad "plain git shows the history"
