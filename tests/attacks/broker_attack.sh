#!/usr/bin/env bash
# Attacks on the broker from inside: tokens where they are worth nothing, proxy requests, forged
# PROXY headers, malformed HTTP.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# In the sandbox: `call TOKEN METHOD PATH [BODY]` prints the status line of the broker's answer.
# shellcheck disable=SC2016
CALL='
b=$(awk "/umpteenth/ { print \$1; exit }" /etc/hosts)
say() { # REQUEST-LINE HEADER-LINES BODY [ADDRESS]
  { printf "%s\nHost: umpteenth\nConnection: close\n%s\n\n" "$1" "${2:-Accept: */*}" | awk "{ printf \"%s\\r\\n\", \$0 }"; printf %s "$3"; } |
    timeout 10 nc -w 3 "${4:-$b}" 8081 | head -1 | tr -d "\r"
}
call() { say "$2 $3 HTTP/1.1" "Authorization: Bearer $1
Content-Length: ${#4}" "$4" "${5:-}"; }
'
begin
victim=$(launch victim 'echo "$UMP_TOKEN" >/workspace/token; i=0; while :; do i=$((i+1)); timeout 20 ump state set beat $i && echo $i >/workspace/beat; sleep 0.2; done')
eventually "a victim's sandbox runs" 150 running "$victim"
victim_root=$(root_of "$victim")
eventually "the victim uses its broker" 60 test -s "$victim_root/workspace/beat"
victim_token=$(cat "$victim_root/workspace/token"); victim_broker=$(endpoint_of "$victim")
# Inside namespaces every broker has the same address: the other's is out of reach, one's own is not.
on_networks || victim_broker=127.0.0.1
[ ${#victim_token} -ge 43 ] && ok "a token has at least 256 bits" || bad "a token has at least 256 bits" "${#victim_token} characters"
inspected=$(engine_api GET "/containers/$(sandbox_of "$victim")/json")
if grep -qF "$victim_token" <<<"$inspected"; then bad "the container's configuration has no token"; else ok "the container's configuration has no token"; fi
if tr '\0' '\n' <"/proc/$(jq -r .State.Pid <<<"$inspected")/environ" | grep -qF "$victim_token"; then bad "init's environment has no token"; else ok "init's environment has no token"; fi
if grep -qaFf "$victim_root/workspace/token" /proc/[0-9]*/cmdline 2>/dev/null; then bad "no command line of the host has a token"; else ok "no command line of the host has a token"; fi
if grep -rqaF "$victim_token" "$D" "$D.log"; then bad "neither umpd's files nor its log have a token" "$(grep -rlaF "$victim_token" "$D" "$D.log")"; else ok "neither umpd's files nor its log have a token"; fi

script="$CALL
echo own: \$(call \$UMP_TOKEN GET /v1/state)
echo others: \$(call $victim_token GET /v1/state)
echo others at its address: [\$(call $victim_token GET /v1/state '' $victim_broker)]
echo own at its address: [\$(call \$UMP_TOKEN GET /v1/state '' $victim_broker)]
echo none: \$(say 'GET /v1/state HTTP/1.1' '' '')
echo empty: \$(call '' GET /v1/state)
echo prefix: \$(call \$(echo \$UMP_TOKEN | cut -c1-20) GET /v1/state)
echo longer: \$(call \${UMP_TOKEN}a GET /v1/state)
echo api: \$(call \$UMP_TOKEN GET /apis/umpteenth.dev/v1alpha1/jobs)
echo up: \$(call \$UMP_TOKEN GET /v1/state/../../readyz)
echo connect: \$(say 'CONNECT 169.254.169.254:80 HTTP/1.1' \"Proxy-Authorization: Bearer \$UMP_TOKEN\" '')
echo absolute: \$(say 'GET http://169.254.169.254/latest HTTP/1.1' \"Authorization: Bearer \$UMP_TOKEN\" '')
echo longbody: \$(say 'POST /v1/step HTTP/1.1' \"Authorization: Bearer \$UMP_TOKEN
Content-Length: 99999999999\" '')
echo both: \$(say 'POST /v1/step HTTP/1.1' \"Authorization: Bearer \$UMP_TOKEN
Content-Length: 5
Transfer-Encoding: chunked\" '0')
echo header: \$(say 'GET /v1/state HTTP/1.1' \"X: \$(head -c 20000 /dev/zero | tr '\\\\0' a)\" '')
printf 'PROXY TCP4 $victim_broker $victim_broker 1 8081\r\nGET /v1/state HTTP/1.1\r\nHost: u\r\nAuthorization: Bearer $victim_token\r\n\r\n' | timeout 5 nc -w 3 \$b 8081 | head -1 | sed 's/^/forged: /'
addr() { printf '\\\\x%02x' \$(echo \$1 | tr . ' '); }
printf \"\\r\\n\\r\\n\\0\\r\\nQUIT\\n\\x21\\x11\\0\\x0c\$(addr $victim_broker)\$(addr $victim_broker)\\x10\\0\\x1f\\x91GET /v1/state HTTP/1.1\\r\\nHost: u\\r\\nAuthorization: Bearer $victim_token\\r\\n\\r\\n\" | timeout 5 nc -w 3 \$b 8081 | head -1 | sed 's/^/forged2: /'
echo still own: \$(call \$UMP_TOKEN GET /v1/state)
echo \$UMP_TOKEN >/ump/outputs/token
"
for job in none-agent listed-root; do
  run=$(launch "$job" "$script"); await "$run"
  says "$job: its own token works at its own address" "$run" '^own: HTTP/1.1 200'
  says "$job: another run's token" "$run" '^others: HTTP/1.1 401'
  if on_networks; then
    says "$job: another run's token at the other's address" "$run" '^others at its address: \[\]'
    says "$job: its token at another's address" "$run" '^own at its address: \[\]'
  else
    says "$job: another run's token at the address that both have" "$run" '^others at its address: \[HTTP/1.1 401'
  fi
  for what in none empty prefix longer; do says "$job: token $what" "$run" "^$what: HTTP/1.1 401"; done
  says "$job: the API is not on the broker's port" "$run" '^api: HTTP/1.1 404'
  says "$job: no way up" "$run" '^up: HTTP/1.1 4'
  says "$job: CONNECT" "$run" '^connect: HTTP/1.1 4'
  says "$job: absolute form" "$run" '^absolute: HTTP/1.1 4'
  says "$job: a body too long" "$run" '^longbody: HTTP/1.1 413'
  says "$job: two lengths" "$run" '^both: HTTP/1.1 400'
  says "$job: a header too long" "$run" '^header: HTTP/1.1 4'
  says "$job: forged PROXY headers" "$run" '!^forged.*200'
  says "$job: it can go on" "$run" '^still own: HTTP/1.1 200'
done
nothing_arrived "proxy requests without a proxy"
umpctl artifacts "run/$run" -o "$WORK/old" >/dev/null
old_token=$(cat "$(find "$WORK/old" -name token | head -1)")
[ -n "$old_token" ] && ok "a token of a run that ended is known" || bad "a token of a run that ended is known"

run=$(launch none-agent "$CALL
echo ended: \$(call $old_token GET /v1/state)"); await "$run"
says "a token after its run" "$run" '^ended: HTTP/1.1 401'
in_phase "$victim" Running && ok "another run goes on meanwhile" || bad "another run goes on meanwhile"
umpd_lives "after all"
umpctl cancel "run/$victim" >/dev/null
await "$victim" 60
