#!/bin/bash
# The real kubectl against a running umpd: kubectl_basic.sh KUBECONFIG [NAMESPACE]
# Each check is named; the last line is `N passed, N failed, N skipped`; exit 1 where one failed.
# It makes and removes objects whose names begin with cf- in the namespace (default: default).
set -u
export KUBECONFIG=${1:?usage: kubectl_basic.sh KUBECONFIG [NAMESPACE]}
NS=${2:-default}
command -v kubectl >/dev/null || { echo "skip all: kubectl is not on PATH"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }

WORK=$(mktemp -d)
export HOME=$WORK/home   # a fresh discovery cache
mkdir -p "$HOME"
trap 'rm -rf "$WORK"' EXIT
GV=umpteenth.dev/v1alpha1
JOBS=/apis/$GV/namespaces/$NS/jobs
passed=0 failed=0 skipped=0

k() { kubectl -n "$NS" --request-timeout=20s "$@"; }

# check NAME EXIT-STATUS PATTERN COMMAND…   (PATTERN !x: must not match; empty: any)
check() {
  local name=$1 want=$2 pattern=$3 out rc
  shift 3
  out=$("$@" 2>&1 </dev/null)
  rc=$?
  local ok=1
  [ "$rc" = "$want" ] || ok=0
  case $pattern in
    '') ;;
    !*) grep -Eq -- "${pattern#!}" <<<"$out" && ok=0 ;;
    *) grep -Eq -- "$pattern" <<<"$out" || ok=0 ;;
  esac
  if [ $ok = 1 ]; then
    passed=$((passed + 1))
    echo "ok   $name"
  else
    failed=$((failed + 1))
    echo "FAIL $name: exit $rc (want $want), want /$pattern/, got:"
    sed 's/^/     /' <<<"$out" | head -20
  fi
}
skip() {
  skipped=$((skipped + 1))
  echo "skip $1: $2"
}
sh_() { bash -c "$1"; }
supports() { kubectl "$@" --help >/dev/null 2>&1; }
# watch_check NAME FIRST THEN PATTERN ARG…: a `kubectl get -w` runs until PATTERN is seen. Once FIRST
# (may be empty) is seen, THEN is run again and again.
watch_check() {
  local name=$1 first=$2 then=$3 pattern=$4 out=$WORK/watch.out watcher seen=0 deadline=$((SECONDS + 40))
  shift 4
  : >"$out"
  kubectl -n "$NS" "$@" >"$out" 2>&1 &
  watcher=$!
  while [ $SECONDS -lt $deadline ] && kill -0 $watcher 2>/dev/null; do
    if grep -Eq -- "$pattern" "$out"; then
      seen=1
      break
    fi
    if [ -n "$then" ] && { [ -z "$first" ] || grep -Eq -- "$first" "$out"; }; then
      bash -c "$then" >/dev/null 2>&1
    fi
    sleep 0.1
  done
  kill $watcher 2>/dev/null
  wait $watcher 2>/dev/null
  if [ $seen = 1 ]; then
    passed=$((passed + 1))
    echo "ok   $name"
  else
    failed=$((failed + 1))
    echo "FAIL $name: want /$pattern/, got:"
    sed 's/^/     /' "$out" | head -20
  fi
}

job() {  # name, instruction, extra label
  cat <<YAML
apiVersion: $GV
kind: Job
metadata:
  name: $1
  labels: {app: cf-demo${3:+, $3}}
spec:
  instruction: $2
YAML
}
job cf-a "first text" >"$WORK/a.yaml"
job cf-a "changed one" >"$WORK/a2.yaml"
job cf-a "changed two" >"$WORK/a3.yaml"
job cf-b "second job" >"$WORK/b.yaml"
job cf-none "missing" >"$WORK/none.yaml"
sed 's/spec:/spec:\n  zzUnknownField: 1/' "$WORK/a.yaml" >"$WORK/bad.yaml"
sed 's/instruction: .*/instruction: [1]/' "$WORK/a.yaml" >"$WORK/type.yaml"
mkdir "$WORK/both" && cp "$WORK/a.yaml" "$WORK/b.yaml" "$WORK/both/"
export -f k job
export NS WORK GV JOBS
k delete jobs.umpteenth.dev cf-a cf-b --ignore-not-found --wait=true >/dev/null 2>&1

# Server and discovery
check version 0 'Server Version: v1\.32' kubectl version
check healthz 0 '^ok' kubectl get --raw /healthz
check readyz 0 '^ok' kubectl get --raw /readyz
check api-resources 0 "^jobs +uj +$GV +true +Job" kubectl api-resources
check api-resources-name 0 '^jobs.umpteenth.dev$' kubectl api-resources --api-group=umpteenth.dev -o name
check api-resources-verbs 0 '^jobs.umpteenth.dev$' kubectl api-resources --verbs=list,watch,patch -o name
check api-resources-core 0 '^namespaces +ns +v1 +false +Namespace' kubectl api-resources
check api-versions 0 "^$GV\$" kubectl api-versions
check legacy-group-version 0 '"kind": ?"APIResourceList"' kubectl get --raw "/apis/$GV"
check unknown-group 1 'NotFound|could not find' kubectl get --raw /apis/no.such.group/v1
check bad-token 1 'You must be logged in to the server|Unauthorized' k --token=wrong get jobs.umpteenth.dev
check impersonation 1 'Forbidden' k --as bob get jobs.umpteenth.dev
check can-i 0 '^yes' k auth can-i list jobs.umpteenth.dev
check can-i-list 0 '\*' k auth can-i --list
if supports auth whoami; then
  check whoami 0 'Username +admin' kubectl auth whoami
else
  skip whoami "this kubectl has none"
fi
check explain 0 'FIELD|instruction' kubectl explain jobs.spec.instruction --api-version=$GV
check explain-recursive 0 'maxTurns' kubectl explain jobs.spec --recursive --api-version=$GV
check openapi-v3-index 0 "\"apis/$GV\"" kubectl get --raw /openapi/v3
check openapi-v3-field-validation 0 '"fieldValidation"' kubectl get --raw "/openapi/v3/apis/$GV"

# Create
check create-dry-client 0 '^job.umpteenth.dev/cf-a created \(dry run\)' k create --dry-run=client -f "$WORK/a.yaml"
check create-dry-server 0 '^job.umpteenth.dev/cf-a created \(server dry run\)' k create --dry-run=server -f "$WORK/a.yaml"
check create-dry-not-stored 1 'NotFound' k get jobs.umpteenth.dev cf-a
check create 0 '^job.umpteenth.dev/cf-a created' k create -f "$WORK/a.yaml"
check create-exists 1 'AlreadyExists.*already exists' k create -f "$WORK/a.yaml"
check create-unknown-strict 1 'strict decoding error: unknown field "spec.zzUnknownField"' sh_ "sed s/cf-a/cf-x/ $WORK/bad.yaml | k create -f -"
check create-unknown-warn 0 'Warning: unknown field "spec.zzUnknownField"' sh_ "sed s/cf-a/cf-x/ $WORK/bad.yaml | k create --validate=warn --dry-run=server -f -"
check create-unknown-ignored 0 '!Warning' sh_ "sed s/cf-a/cf-x/ $WORK/bad.yaml | k create --validate=false --dry-run=server -f -"
check create-bad-type 1 'is invalid|must be of type|Invalid value' sh_ "sed s/cf-a/cf-x/ $WORK/type.yaml | k create -f -"
check create-wrong-version 1 'no matches for kind' sh_ "sed 's#v1alpha1#v999#' $WORK/a.yaml | k create -f -"
check create-missing-namespace 1 'namespaces "cf-nowhere" not found' kubectl -n cf-nowhere create -f "$WORK/a.yaml"

# Read
k create -f "$WORK/b.yaml" >/dev/null
check get-rows 0 '^cf-b ' k get jobs.umpteenth.dev
check get-header 0 '^NAME +SCHEDULE' k get jobs.umpteenth.dev
check get-slash 0 '^cf-a ' k get jobs.umpteenth.dev/cf-a
check get-short 0 '^cf-a ' k get uj cf-a
check get-wide 0 'TIMEOUT' k get jobs.umpteenth.dev -o wide
check get-yaml 0 '^kind: Job' k get jobs.umpteenth.dev cf-a -o yaml
check get-json-uid 0 '"uid": "[0-9a-f-]{36}"' k get jobs.umpteenth.dev cf-a -o json
check get-jsonpath 0 'cf-a.*cf-b' k get jobs.umpteenth.dev -o 'jsonpath={.items[*].metadata.name}'
check get-go-template 0 '^cf-a$' k get jobs.umpteenth.dev cf-a -o 'go-template={{.metadata.name}}'
check get-labels 0 'LABELS' k get jobs.umpteenth.dev --show-labels
check get-selector 0 '^job.umpteenth.dev/cf-a' k get jobs.umpteenth.dev -l app=cf-demo -o name
check get-selector-notin 0 '!cf-a' k get jobs.umpteenth.dev -l 'app notin (cf-demo)' -o name
check get-selector-notexists 0 '!cf-a' k get jobs.umpteenth.dev -l '!app' -o name
check get-selector-bad 1 'BadRequest|unable to parse' kubectl get --raw "$JOBS?labelSelector=a%20in%20b"
check get-field-neq 0 '!/cf-b$' k get jobs.umpteenth.dev --field-selector metadata.name!=cf-b -o name
check get-all-namespaces 0 "^$NS +cf-a " kubectl get jobs.umpteenth.dev -A
check get-chunked 0 'cf-b' k get jobs.umpteenth.dev --chunk-size=1
check get-continue 0 '"continue": ?"[^"]+"' kubectl get --raw "$JOBS?limit=1"
check get-continue-bad 1 'continue key is not valid' kubectl get --raw "$JOBS?limit=1&continue=zzz"
check get-resource-version-0 0 '"kind": ?"JobList"' kubectl get --raw "$JOBS?resourceVersion=0&limit=500"
check get-sort-by 0 'cf-b' k get jobs.umpteenth.dev --sort-by=.metadata.name
check get-missing 1 'Error from server \(NotFound\): jobs.umpteenth.dev "nope" not found' k get jobs.umpteenth.dev nope
check get-ignore-not-found 0 '' k get jobs.umpteenth.dev nope --ignore-not-found
check get-namespaces 0 "^$NS +Active" kubectl get ns
check describe 0 '^Name: +cf-a' k describe jobs.umpteenth.dev cf-a
if supports events; then
  check events-for 0 '' k events --for jobs.umpteenth.dev/cf-a
else
  skip events-for "this kubectl has none"
fi
check get-events 0 '' k get events

# Client-side apply
k delete jobs.umpteenth.dev cf-a >/dev/null
check apply-create 0 '^job.umpteenth.dev/cf-a created' k apply -f "$WORK/a.yaml"
check apply-unchanged 0 '^job.umpteenth.dev/cf-a unchanged' k apply -f "$WORK/a.yaml"
check apply-configured 0 '^job.umpteenth.dev/cf-a configured' k apply -f "$WORK/a2.yaml"
check apply-generation 0 '^2$' k get jobs.umpteenth.dev cf-a -o 'jsonpath={.metadata.generation}'
check apply-dry-server 0 'configured \(server dry run\)' k apply --dry-run=server -f "$WORK/a3.yaml"
check apply-dry-kept 0 '^changed one$' k get jobs.umpteenth.dev cf-a -o 'jsonpath={.spec.instruction}'
check apply-prunes-fields 0 '!cf-added' sh_ "kubectl patch --local -f $WORK/a.yaml --type=merge -p '{\"metadata\":{\"labels\":{\"cf-added\":\"1\"}}}' -o yaml | k apply -f - >/dev/null; k apply -f $WORK/a.yaml >/dev/null; k get jobs.umpteenth.dev cf-a -o 'jsonpath={.metadata.labels}'"
check apply-missing-annotation 0 'missing the kubectl.kubernetes.io/last-applied-configuration' k apply -f "$WORK/b.yaml"
check apply-directory 0 'cf-b (unchanged|configured)' k apply -f "$WORK/both"
check apply-unknown-field 1 'unknown field "spec.zzUnknownField"' k apply -f "$WORK/bad.yaml"
check diff-none 0 '' k diff -f "$WORK/a.yaml"
check diff-some 1 '\+ +instruction: changed two' k diff -f "$WORK/a3.yaml"

# Patch, label, annotate, edit, replace
check patch-merge 0 '^job.umpteenth.dev/cf-a patched$' k patch jobs.umpteenth.dev cf-a --type=merge -p '{"spec":{"instruction":"p1"}}'
check patch-no-change 0 'patched \(no change\)' k patch jobs.umpteenth.dev cf-a --type=merge -p '{"spec":{"instruction":"p1"}}'
check patch-json 0 'patched$' k patch jobs.umpteenth.dev cf-a --type=json -p '[{"op":"test","path":"/spec/instruction","value":"p1"},{"op":"replace","path":"/spec/instruction","value":"p2"}]'
check patch-strategic 1 'strategic-merge-patch\+json is not supported' k patch jobs.umpteenth.dev cf-a -p '{"spec":{"instruction":"p3"}}'
check patch-kept 0 '^p2$' k get jobs.umpteenth.dev cf-a -o 'jsonpath={.spec.instruction}'
check patch-rename 1 '.' k patch jobs.umpteenth.dev cf-a --type=merge -p '{"metadata":{"name":"other"}}'
check patch-invalid 1 'is invalid' k patch jobs.umpteenth.dev cf-a --type=merge -p '{"spec":{"limits":{"maxTurns":100000}}}'
check label 0 'labeled' k label jobs.umpteenth.dev cf-a cf=1
check label-overwrite 0 'labeled' k label jobs.umpteenth.dev cf-a cf=2 --overwrite
check label-selector 0 'cf-b labeled' k label jobs.umpteenth.dev -l app=cf-demo cf-sel=1
check annotate 0 'annotated' k annotate jobs.umpteenth.dev cf-a cf/note=x
check annotate-remove 0 'annotated' k annotate jobs.umpteenth.dev cf-a cf/note-
check edit-nochange 0 'no changes made' env KUBE_EDITOR=true kubectl -n "$NS" edit jobs.umpteenth.dev cf-a
check edit-change 0 'edited' env KUBE_EDITOR="sed -i s/p2/p4/" kubectl -n "$NS" edit jobs.umpteenth.dev cf-a
check replace-stale 1 'Conflict.*object has been modified' sh_ "k get jobs.umpteenth.dev cf-a -o yaml >$WORK/old.yaml; k label jobs.umpteenth.dev cf-a cf-r=1 >/dev/null; k replace -f $WORK/old.yaml"
check replace 0 'replaced' k replace -f "$WORK/a.yaml"
check replace-missing 1 'NotFound' k replace -f "$WORK/none.yaml"
check set-last-applied 0 'configured' k apply set-last-applied -f "$WORK/a.yaml" --create-annotation

# Status and waiting
check status-ignored-on-main 0 'patched \(no change\)' k patch jobs.umpteenth.dev cf-a --type=merge -p '{"status":{"conditions":[{"type":"Cf","status":"False"}]}}'
TRUE='{"status":{"conditions":[{"type":"Cf","status":"True","reason":"Check","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
if kubectl patch --help 2>/dev/null | grep -q -- --subresource; then
  check status-patch 0 'patched' k patch jobs.umpteenth.dev cf-a --subresource=status --type=merge -p "$TRUE"
  check wait-condition 0 'condition met' k wait --for=condition=Cf jobs.umpteenth.dev/cf-a --timeout=5s
  check wait-jsonpath 0 'condition met' k wait '--for=jsonpath={.metadata.name}=cf-a' jobs.umpteenth.dev/cf-a --timeout=5s
else
  skip status-patch "this kubectl has no --subresource"
fi
check wait-missing 1 'NotFound' k wait --for=condition=Cf jobs.umpteenth.dev/nope --timeout=2s
check wait-times-out 1 'timed out' k wait --for=condition=Never jobs.umpteenth.dev/cf-a --timeout=1s

# Watch
watch_check watch '' '' '^cf-a ' get jobs.umpteenth.dev -w
watch_check watch-only '' 'k label jobs.umpteenth.dev cf-a --overwrite cf-w=$RANDOM' '^cf-a ' get jobs.umpteenth.dev --watch-only
watch_check watch-one '' '' '^cf-a ' get jobs.umpteenth.dev cf-a -w
k label jobs.umpteenth.dev cf-a cf-sel=1 --overwrite >/dev/null
watch_check watch-selector-leaves '^ADDED +cf-a' 'k label jobs.umpteenth.dev cf-a cf-sel-' '^DELETED +cf-a' get jobs.umpteenth.dev -l cf-sel=1 -w --output-watch-events
check watch-from-zero 0 '"type": ?"ADDED"' kubectl get --raw "$JOBS?watch=true&timeoutSeconds=1&resourceVersion=0"
check watch-list-client 0 'condition met' env KUBE_FEATURE_WatchListClient=true kubectl -n "$NS" wait '--for=jsonpath={.metadata.name}=cf-a' jobs.umpteenth.dev/cf-a --timeout=5s

# Server-side apply
check ssa-create 0 '^job.umpteenth.dev/cf-a serverside-applied' sh_ "k delete jobs.umpteenth.dev cf-a >/dev/null; k apply --server-side -f $WORK/a.yaml"
check ssa-managed 0 '^kubectl Apply$' k get jobs.umpteenth.dev cf-a --show-managed-fields -o 'jsonpath={.metadata.managedFields[0].manager} {.metadata.managedFields[0].operation}'
check ssa-again 0 'serverside-applied' k apply --server-side -f "$WORK/a.yaml"
check ssa-conflict 1 'Apply failed with 1 conflict: conflict with "kubectl".*: \.spec\.instruction' k apply --server-side --field-manager=cf-two -f "$WORK/a2.yaml"
check ssa-force 0 'serverside-applied' k apply --server-side --field-manager=cf-two --force-conflicts -f "$WORK/a2.yaml"
check ssa-diff 1 '\+ +instruction: changed two' k diff --server-side --force-conflicts -f "$WORK/a3.yaml"
check ssa-from-csa 0 'serverside-applied' sh_ "k delete jobs.umpteenth.dev cf-b >/dev/null; k apply -f $WORK/b.yaml >/dev/null; sed 's/second job/moved/' $WORK/b.yaml | k apply --server-side -f -"
check ssa-from-csa-again 0 'serverside-applied' sh_ "sed 's/second job/moved on/' $WORK/b.yaml | k apply --server-side -f -"

# Namespaces
check create-ns 0 'namespace/cf-ns created' kubectl create ns cf-ns
check get-ns 0 '^cf-ns +Active' kubectl get ns cf-ns
check workspace-of-ns 0 '^cf-ns ' kubectl get ws cf-ns
check delete-ns 0 'deleted' kubectl delete ns cf-ns --timeout=20s

# Delete
check delete-dry-server 0 'deleted \(server dry run\)' k delete jobs.umpteenth.dev cf-a --dry-run=server
k patch jobs.umpteenth.dev cf-a --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}' >/dev/null
check finalizer-delete-times-out 1 'timed out' k delete jobs.umpteenth.dev cf-a --timeout=2s
k patch jobs.umpteenth.dev cf-a --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
check finalizer-removed-delete-ends 0 '' k wait --for=delete jobs.umpteenth.dev/cf-a --timeout=15s
k apply -f "$WORK/a.yaml" >/dev/null
check owner-gc 0 '' sh_ "u=\$(k get jobs.umpteenth.dev cf-a -o 'jsonpath={.metadata.uid}'); k patch jobs.umpteenth.dev cf-b --type=merge -p '{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"$GV\",\"kind\":\"Job\",\"name\":\"cf-a\",\"uid\":\"'\$u'\"}]}}' >/dev/null && k delete jobs.umpteenth.dev cf-a >/dev/null && k wait --for=delete jobs.umpteenth.dev/cf-b --timeout=20s"
k apply -f "$WORK/a.yaml" >/dev/null
check delete-orphan 0 'deleted' k delete jobs.umpteenth.dev cf-a --cascade=orphan
k apply -f "$WORK/a.yaml" >/dev/null
check delete-now 0 'deleted' k delete jobs.umpteenth.dev cf-a --now
check delete-missing 1 'NotFound' k delete jobs.umpteenth.dev cf-a
k apply -f "$WORK/both" >/dev/null
check delete-file 0 'cf-b" deleted' k delete -f "$WORK/both"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
