#!/usr/bin/env bash
# Bad input over the wire: manifests by umpctl and raw by curl, references to what does not exist,
# floods and half-open connections; and secrets, whose values are then searched for everywhere.
. "$(dirname "$0")/lib.sh"

D=$WORK/data
start_umpd "$D" || { bad "umpd starts"; exit 1; }
server=$(sed -n 's/^ *server: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$KUBECONFIG" | head -1)
port=${server##*:}
printf 'header = "Authorization: Bearer %s"\n' "$(sed -n 's/^ *token: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$KUBECONFIG" | head -1)" >"$WORK/curlrc"
GROUP=$server/apis/umpteenth.dev/v1alpha1
JOBS=$GROUP/namespaces/default/jobs
ANSWERS=$WORK/answers   # everything that was ever answered, for the search at the end
: >"$ANSWERS"

# raw METHOD URL [curl arguments]: "CODE BODY"
raw() {
  local method=$1 url=$2; shift 2
  curl -sk --max-time 30 -K "$WORK/curlrc" -X "$method" -w '%{stderr}%{http_code} ' -o "$WORK/body" "$@" "$url" 2>&1
  cat "$WORK/body" 2>/dev/null; echo; rm -f "$WORK/body"
}
post() { raw POST "$1" -H "Content-Type: $2" --data-binary "@$3"; }
said() { "$@" 2>&1 | tee -a "$ANSWERS"; return "${PIPESTATUS[0]}"; }

job() { # NAME [more lines of the spec]
  printf 'apiVersion: umpteenth.dev/v1alpha1\nkind: Job\nmetadata: {name: %s}\nspec:\n  instruction: one\n  model: {provider: none-yet, name: scripted}\n  network: {mode: None}\n' "$1"
  [ $# -lt 2 ] || printf '  %s\n' "${@:2}"
}

# Manifests. Each is refused by umpctl with words that name the place, and by the server with a Status
# of 4xx; nothing of them is kept.
B=$WORK/bad
mkdir "$B"
job malformed 'limits: {timeoutSeconds: 30' >"$B/malformed.yaml"
job truncated | head -c 30 >"$B/truncated.yaml"
printf '{"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","metadata":{"name":"cut"},"spec":{"instr' >"$B/truncated.json"
{ job deep; printf '  inputs: '; printf '[%.0s' {1..200}; printf ']%.0s' {1..200}; echo; } >"$B/deep.yaml"
{ printf '{"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","metadata":{"name":"deep"},"spec":{"instruction":'; head -c 100000 /dev/zero | tr '\0' '['; head -c 100000 /dev/zero | tr '\0' ']'; printf '}}'; } >"$B/deep.json"
{ printf 'a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b]\n'; job aliased; } >"$B/aliased.yaml"
job duplicate 'instruction: two' >"$B/duplicate.yaml"
printf '{"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","metadata":{"name":"dup"},"spec":{"instruction":"a","instruction":"b"}}' >"$B/duplicate.json"
job wrong-type 'limits: {timeoutSeconds: [1]}' >"$B/type.yaml"
{ job bytes | sed 's/: one/: \xff\xfe/'; } >"$B/bytes.yaml"
printf '{"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","metadata":{"name":"bytes"},"spec":{"instruction":"\xff\xfe"}}' >"$B/bytes.json"
job kind | sed 's/kind: Job/kind: Jobb/' >"$B/kind.yaml"
job field 'instructionn: one' >"$B/field.yaml"
job "$(printf 'x%.0s' {1..254})" >"$B/long.yaml"
job 'Not_A_Name' >"$B/name.yaml"
{ job huge; printf '  secrets: []\n#'; head -c 3300000 /dev/zero | tr '\0' 'x'; echo; } >"$B/huge.yaml"
job version | sed 's/v1alpha1/v9/' >"$B/version.yaml"
printf -- '- a\n- b\n' >"$B/list.yaml"
: >"$B/empty.yaml"

refused() { # FILE EXIT REGEX CODE REGEX-OF-THE-SERVER; exit 2 is what umpctl finds itself, 1 what the server says
  local type=application/yaml out
  [[ $1 == *.json ]] && type=application/json
  expect "umpctl refuses $1" "$2" "$3" umpctl apply -f "$B/$1"
  out=$(post "$JOBS?fieldValidation=Strict" "$type" "$B/$1"); printf '%s' "$out" >>"$ANSWERS"
  if [[ $out =~ ^$4\  ]] && grep -qE -- "$5" <<<"$out" && grep -q '"kind":"Status"' <<<"$out"; then ok "the server refuses $1"
  else bad "the server refuses $1" "not $4 with $5: ${out:0:800}"; fi
}
refused malformed.yaml 2 'line [0-9]+' 400 'line [0-9]+'
refused truncated.yaml 2 '.' 400 '.'
refused truncated.json 2 '.' 400 '.'
refused deep.yaml 2 '64 levels' 400 '64 levels'
refused deep.json 2 '.' 400 '(deep|levels|nest)'
refused aliased.yaml 2 '(alias|anchor)' 400 '(alias|anchor)'
refused duplicate.yaml 2 'instruction' 400 'duplicate.*instruction|instruction.*(twice|duplicate)'
refused duplicate.json 2 'instruction' 400 'instruction'
refused type.yaml 1 'type\.yaml:8: spec\.limits\.timeoutSeconds: ' 4.. 'spec.limits.timeoutSeconds'
refused bytes.yaml 2 'UTF-8' 400 'UTF-8'
refused bytes.json 2 'UTF-8' 400 'UTF-8|encoding'
refused kind.yaml 2 'Jobb' 400 'Jobb'
refused field.yaml 1 'field\.yaml:8: spec\.instructionn: unknown field' 4.. 'spec.instructionn'
refused long.yaml 1 'metadata.name' 422 'metadata.name'
refused name.yaml 1 'name\.yaml:3: metadata\.name: ' 422 'metadata.name.*Not_A_Name'
refused huge.yaml 1 '(3 ?MiB|3145728|[Tt]oo large|larger)' 413 '(large|3145728|MiB)'
refused version.yaml 2 'v9' 400 'v9'
refused list.yaml 2 '.' 400 '.'
expect "umpctl refuses an empty manifest" 2 'no objects' umpctl apply -f "$B/empty.yaml"
expect "a chunked body over 3 MiB" 0 '^413 ' raw POST "$JOBS" -H 'Content-Type: application/yaml' -H 'Transfer-Encoding: chunked' --data-binary "@$B/huge.yaml"
expect "an unknown media type" 0 '^415 ' raw POST "$JOBS" -H 'Content-Type: text/html' --data-binary "@$B/field.yaml"
expect "an unknown resource" 0 '^404 .*"kind":"Status"' raw GET "$GROUP/namespaces/default/jobbs"
expect "an unknown method" 0 '^405 ' raw TRACE "$JOBS"
expect "a patch that is no patch" 0 '^4[0-9][0-9] .*"Status"' raw PATCH "$JOBS/none" -H 'Content-Type: application/json-patch+json' --data-binary '{"op":1}'
expect "a limit that is no number" 0 '^400 .*limit' raw GET "$JOBS?limit=many"
expect "a selector that is none" 0 '^400 .*unable to parse' raw GET "$JOBS?labelSelector=%3D%3D%3D"
expect "a made-up continue token" 0 '^4(00|10) .*"Status"' raw GET "$JOBS?limit=1&continue=bm9uZQ"
expect "nothing of all that was kept" 0 'No resources found' umpctl get jobs
job warned 'instructionn: one' >"$WORK/warned.yaml"
expect "an unknown field is a warning when asked so" 0 'Warning: .*instructionn' umpctl apply --validate=warn -f "$WORK/warned.yaml"
expect "and is not kept" 0 '!instructionn: one' umpctl get job warned -o 'jsonpath={.spec}'

# References to what does not exist.
umpctl delete job warned >/dev/null
job waits 'secrets: [{secret: not-there, env: TOKEN}]' >"$WORK/waits.yaml"
expect "a job with open references is accepted" 0 'created' umpctl apply -f "$WORK/waits.yaml"
condition() { umpctl get job waits -o "jsonpath={.status.conditions[?(@.type==\"$1\")]['status','message']}"; }
says() { condition "$1" | grep -qE "$2"; }
eventually "SecretsResolved names the missing secret" 15 says SecretsResolved 'False.*not-there'
eventually "ModelResolved names the missing provider" 15 says ModelResolved 'False.*none-yet'
eventually "Ready is False" 15 says Ready False
cat >"$WORK/heal.yaml" <<'YAML'
apiVersion: umpteenth.dev/v1alpha1
kind: ModelProvider
metadata: {name: none-yet}
spec: {type: Scripted, models: [{name: scripted}], script: []}
---
apiVersion: umpteenth.dev/v1alpha1
kind: Secret
metadata: {name: not-there}
spec: {stringData: {value: "healing-value-0815"}}
YAML
expect "what was missing appears" 0 'created' umpctl apply -f "$WORK/heal.yaml"
eventually "SecretsResolved heals" 15 says SecretsResolved '^True'
eventually "ModelResolved heals" 15 says ModelResolved '^True'
eventually "Ready heals" 15 says Ready '^True'
umpctl delete secret not-there >/dev/null

# Watches, floods, half-open connections.
expect "a watch from the future is no silent wait" 0 '(Too large resource version|410|504|Expired)' raw GET "$JOBS?watch=1&resourceVersion=999999999999&timeoutSeconds=3"
expect "a watch from what is no revision" 0 '^400 ' raw GET "$JOBS?watch=1&resourceVersion=yesterday"
expect "a list of the future" 0 '(Too large resource version|^4[0-9][0-9] |^504 )' raw GET "$JOBS?resourceVersion=999999999999&resourceVersionMatch=Exact"
for i in $(seq 150); do echo "header = \"X-Flood-$i: x\""; done >"$WORK/flood"
expect "150 header fields" 0 '^431 ' raw GET "$JOBS" -K "$WORK/flood"
{ printf 'header = "X-Flood: '; head -c 20000 /dev/zero | tr '\0' 'x'; echo '"'; } >"$WORK/long-header"
expect "a header of 20 kB" 0 '^431 ' raw GET "$JOBS" -K "$WORK/long-header"
expect "a line of 20 kB" 0 '^4(14|31) ' raw GET "$JOBS?labelSelector=$(head -c 20000 /dev/zero | tr '\0' 'x')"
held=()
for _ in $(seq 200); do exec {fd}<>"/dev/tcp/127.0.0.1/$port" && held+=("$fd"); done
expect "200 half-open connections hinder nobody" 0 '^waits ' umpctl get jobs
one=${held[0]}; begin=$SECONDS
timeout 12 cat <&"$one" >/dev/null; rc=$?
[ $rc = 0 ] && [ $((SECONDS - begin)) -le 11 ] && ok "a half-open connection is closed" || bad "a half-open connection is closed" "cat: $rc after $((SECONDS - begin)) s"
for fd in "${held[@]}"; do exec {fd}>&-; done

# Secrets: every way in, then a search for the raw values.
V=raw-value-of-the-secret
secret() { printf 'apiVersion: umpteenth.dev/v1alpha1\nkind: Secret\nmetadata: {name: %s}\nspec:\n  stringData: {value: "%s"}\n' "$1" "$V-$2"; }
SECRETS=$GROUP/namespaces/default/secrets
secret u-create 01 >"$WORK/s"; expect "umpctl create" 0 created said umpctl create -f "$WORK/s"
secret u-apply 02 >"$WORK/s"; expect "umpctl apply" 0 sealedData said umpctl apply -f "$WORK/s" -o yaml
secret u-apply 02 >"$WORK/s"; expect "umpctl apply again" 0 unchanged said umpctl apply -f "$WORK/s"
secret u-apply 03 >"$WORK/s"; expect "umpctl apply another" 0 configured said umpctl apply -f "$WORK/s"
expect "umpctl diff shows no value" 1 "!$V" said umpctl diff -f <(secret u-apply 04)
secret u-ssa 05 >"$WORK/s"; expect "umpctl apply --server-side" 0 '.' said umpctl apply --server-side -f "$WORK/s" -o json
secret u-create 06 >"$WORK/s"; expect "umpctl replace" 0 replaced said umpctl replace -f "$WORK/s"
expect "umpctl patch" 0 patched said umpctl patch secret u-create -p "{\"spec\":{\"stringData\":{\"value\":\"$V-07\",\"more\":\"$V-08\"}}}"
expect "umpctl apply --dry-run=server" 0 dry said umpctl apply --dry-run=server -f <(secret u-dry 10) -o yaml
expect "a value in an annotation is refused" 1 '.' said umpctl apply -f <(secret u-note 11 | sed "s/{name: u-note}/{name: u-note, annotations: {note: \"it is $V-11\"}}/")
expect "a value that is no string is refused" 1 'stringData' said umpctl apply -f <(secret u-type 12 | sed "s/\"$V-12\"/[\"$V-12\"]/")
expect "a key that is none is refused" 1 'stringData' said umpctl apply -f <(secret u-key 13 | sed "s/{value:/{\"a b\":/")
secret w-post 14 >"$WORK/s"; expect "POST" 0 '^201 ' said post "$SECRETS" application/yaml "$WORK/s"
expect "JSON patch" 0 '^200 ' said raw PATCH "$SECRETS/w-post" -H 'Content-Type: application/json-patch+json' --data-binary "[{\"op\":\"add\",\"path\":\"/spec/stringData\",\"value\":{\"value\":\"$V-15\"}}]"
expect "JSON patch whose test is a value" 0 '^4' said raw PATCH "$SECRETS/w-post" -H 'Content-Type: application/json-patch+json' --data-binary "[{\"op\":\"test\",\"path\":\"/spec/stringData/value\",\"value\":\"$V-15\"}]"
expect "merge patch" 0 '^200 ' said raw PATCH "$SECRETS/w-post" -H 'Content-Type: application/merge-patch+json' --data-binary "{\"spec\":{\"stringData\":{\"value\":\"$V-16\"}}}"
secret u-seal 27 >"$WORK/s"; expect "umpctl seal" 0 "sealedData" said umpctl seal -f "$WORK/s"
umpctl seal -f "$WORK/s" >"$WORK/sealed.yaml"
expect "a sealed manifest is applied" 0 created said umpctl apply -f "$WORK/sealed.yaml"
sed 's/name: u-seal/name: u-moved/' "$WORK/sealed.yaml" >"$WORK/moved.yaml"
expect "and opens nowhere else" 1 'sealedData' said umpctl apply -f "$WORK/moved.yaml"
umpctl get --raw /umpteenth/v1alpha1/sealing-key >"$WORK/key"
expect "umpctl seal without umpd" 0 "sealedData" said env -u UMPCONFIG -u KUBECONFIG HOME="$WORK/none" umpctl -n default seal --key "$WORK/key" -f "$WORK/s"
printf '{"apiVersion":"umpteenth.dev/v1alpha1","kind":"Secret","metadata":{"name":"w-cut"},"spec":{"stringData":{"value":"%s-17"}' "$V" >"$WORK/s"
expect "a cut body with a value" 0 '^400 ' said post "$SECRETS" application/json "$WORK/s"
printf '{"apiVersion":"umpteenth.dev/v1alpha1","kind":"Secret","metadata":{"name":"w-kind"},"spec":"%s-18"}' "$V" >"$WORK/s"
expect "a value in the spec's place" 0 '^4' said post "$SECRETS" application/json "$WORK/s"
expect "a value where a Job has no field" 0 '^4' said post "$JOBS?fieldValidation=Strict" application/yaml <(job w-job "stringData: {value: $V-19}")
if command -v kubectl >/dev/null; then
  export HOME=$WORK
  printf '#!/bin/sh\nprintf "  stringData: {edited: %s-09}\\n" >"$1.x"; sed "/^spec:/r $1.x" "$1" >"$1.y" && cat "$1.y" >"$1"; rm -f "$1.x" "$1.y"\n' "$V" >"$WORK/editor"
  chmod +x "$WORK/editor"
  secret k-create 20 >"$WORK/s"; expect "kubectl create" 0 created said kubectl create -f "$WORK/s" --save-config
  secret k-apply 21 >"$WORK/s"; expect "kubectl apply" 0 created said kubectl apply -f "$WORK/s"
  before=$(umpctl get secret k-apply -o 'jsonpath={.metadata.resourceVersion}')
  expect "kubectl apply again" 0 'unchanged|configured' said kubectl apply -f "$WORK/s"
  [ "$(umpctl get secret k-apply -o 'jsonpath={.metadata.resourceVersion}')" = "$before" ] && ok "which keeps the old ciphertext" || bad "which keeps the old ciphertext"
  secret k-apply 22 >"$WORK/s"; expect "kubectl apply another" 0 sealedData said kubectl apply -f "$WORK/s" -o yaml
  secret k-ssa 23 >"$WORK/s"; expect "kubectl apply --server-side" 0 applied said kubectl apply --server-side -f "$WORK/s"
  secret k-create 24 >"$WORK/s"; expect "kubectl replace" 0 replaced said kubectl replace -f "$WORK/s"
  expect "kubectl patch" 0 patched said kubectl patch secrets.umpteenth.dev k-create --type=merge -p "{\"spec\":{\"stringData\":{\"value\":\"$V-25\"}}}"
  expect "kubectl edit" 0 edited said env KUBE_EDITOR="$WORK/editor" kubectl edit secrets.umpteenth.dev k-ssa
  expect "kubectl get -o yaml" 0 sealedData said kubectl get secrets.umpteenth.dev -o yaml --show-managed-fields
  secret k-apply 22 | sed "s/{value: .*/{other: \"$V-26\"}/" >"$WORK/s"
  expect "kubectl apply with another key" 0 configured said kubectl apply -f "$WORK/s"
  expect "removes the key that left the manifest" 0 '^\{"other":' umpctl get secret k-apply -o 'jsonpath={.spec.sealedData}'
else
  skip "kubectl with secrets" "kubectl is not installed"
fi
said umpctl get secrets -o yaml --show-managed-fields >/dev/null
said umpctl get events >/dev/null
said umpctl history secret u-create >/dev/null
said raw GET "$server/metrics" >/dev/null

# One more value is written in the clear on purpose, so that the search is known to find.
umpctl label job waits "probe=$V-99" >/dev/null && ok "a probe for the search" || bad "a probe for the search"
every_byte() {
  local repository
  find "$D" -type f -exec cat {} +
  find "$D" -name HEAD -path '*.git/HEAD' -printf '%h\n' | while read -r repository; do
    git -C "$repository" cat-file --batch-all-objects --batch --buffer
  done
  find "$D" -type f \( -name '*.db' -o -name '*.sqlite*' \) ! -name '*-wal' ! -name '*-shm' | while read -r repository; do sqlite3 "file:$repository?mode=ro" .dump 2>/dev/null; done
  cat "$D.log"
}
every_byte 2>/dev/null | grep -aoE "(healing-value-0815|$V-[0-9]+)" | sort | uniq -c >"$WORK/found"
grep -q -- "$V-99" "$WORK/found" && ok "the search finds what is in the clear" || bad "the search finds what is in the clear"
grep -v -- "$V-99" "$WORK/found" >"$WORK/leaked" && bad "no value in data and log" "$(cat "$WORK/leaked")" || ok "no value in data and log"
grep -aoE "$V-[0-9]+" "$ANSWERS" | sort | uniq -c >"$WORK/leaked" 2>&1
[ ! -s "$WORK/leaked" ] && ok "no value in any answer" || bad "no value in any answer" "$(cat "$WORK/leaked")"
stop_umpd 12
every_byte 2>/dev/null | grep -aoE "(healing-value-0815|$V-[0-9]+)" | grep -v -- "$V-99" | sort | uniq -c >"$WORK/leaked"
[ ! -s "$WORK/leaked" ] && ok "nor after umpd ended" || bad "nor after umpd ended" "$(cat "$WORK/leaked")"
