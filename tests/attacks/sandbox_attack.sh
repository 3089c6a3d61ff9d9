#!/usr/bin/env bash
# The sandbox's walls from inside, as agent and as root job: system calls, /proc, /sys, cgroups,
# devices, sockets, setuid; `ump` killed, stopped, traced and replaced; links and odd files where
# umpd reads; bombs of processes, memory, output and disk; staying after the run's end. The walls are
# the same on both attachments; on networks there is an interface to attack as well.
# attachment: network
. "$(dirname "$(readlink -f "$0")")/lib.sh"

JOBS=(none-agent none-root none-links-agent none-links-root none-bomb-agent none-bomb-root)
OTHERS=(victim)
begin

cancel() { umpctl cancel "run/$1" >"$WORK/cancel" 2>&1; }
gone() { [ "$(engine_api GET "/containers/$1/json" -o /dev/null -w '%{http_code}')" = 404 ]; }
hand_in() { umpctl artifacts "run/$1" -o "$2" >"$WORK/artifacts" 2>&1; }

# A run that is nobody's concern, and a file of the host that is nobody's either.
another_begins() {
  victim=$(launch victim 'sleep 590')
  eventually "another run begins" 150 running "$victim"
  victim_pid=$(engine_api GET "/containers/$(sandbox_of "$victim")/json" | jq -r .State.Pid)
}
another_goes_on() {
  in_phase "$victim" Running && kill -0 "$victim_pid" && ok "$1: another run goes on" || bad "$1: another run goes on"
  cancel "$victim"; await "$victim" 60
}
another_begins
canary=canary-$RANDOM$RANDOM$RANDOM
echo "$canary" >"$WORK/canary"
hostname=$(cat /proc/sys/kernel/hostname) pattern=$(cat /proc/sys/kernel/core_pattern)
before=$(umpd_memory)

# The walls.
# shellcheck disable=SC2016
walls='
probe calls
open() { echo "OPEN $*"; }
n=0
for f in /proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/kernel/modprobe \
  /proc/sys/vm/drop_caches /proc/sys/vm/panic_on_oom /proc/sys/net/ipv4/ip_forward /proc/sys/fs/binfmt_misc/register \
  /proc/sys/kernel/randomize_va_space /proc/irq/default_smp_affinity /proc/bus/x /proc/fs/x /proc/acpi/wakeup /proc/scsi/scsi \
  /sys/kernel/uevent_helper /sys/power/state /sys/kernel/mm/ksm/run /sys/module/loop/parameters/max_loop \
  /sys/class/net/lo/mtu /sys/firmware/x $(find /sys/fs/cgroup -name "*release_agent" -o -name "*limit_in_bytes" -o -name "pids.max" -o -name "memory.max" -o -name "cgroup.procs" -o -name "devices.allow" -o -name "cpu.cfs_quota_us" 2>/dev/null); do
  n=$((n+1)); (echo 1 >"$f") 2>/dev/null && open "write $f"
done
mkdir /sys/fs/cgroup/mine /sys/fs/cgroup/memory/mine /sys/fs/cgroup/pids/mine 2>/dev/null && open cgroup
for f in /proc/1/environ /proc/1/mem /proc/1/maps /proc/kcore /proc/keys /proc/timer_list /proc/sched_debug /dev/mem /dev/kmsg /dev/port /dev/fuse /dev/kvm \
  /dev/sda /dev/vda /dev/nvme0n1 /dev/loop0 /dev/loop-control /dev/net/tun /dev/vhost-net /dev/vsock; do
  n=$((n+1)); [ -n "$(timeout 2 head -c 16 "$f" 2>/dev/null)" ] && open "read $f"
done
ls -d /proc/1/root/. /proc/1/cwd/. /proc/1/fd/0 2>/dev/null | sed "s/^/OPEN list /"
for s in $(find / -xdev -type s 2>/dev/null) /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock /run/dbus/system_bus_socket; do
  n=$((n+1)); [ -e "$s" ] && open "socket $s"
done
awk "\$2 != \"/\" && \$1 ~ /^\/dev\// { print \"OPEN mount of a disk: \" \$0 }" /proc/self/mounts | grep -vE " /etc/(hosts|hostname|resolv.conf) "
for p in /proc/[0-9]*; do   # other users, were there any
  [ "$(stat -c %u "$p")" != "$(id -u)" ] && tr "\0" "\n" <"$p/environ" 2>/dev/null | grep . | sed "s|^|OPEN $p/environ |"
done
tr "\0" " " </proc/1/cmdline; echo
case $(cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" "\n") in *"$UMP_TOKEN"*) open "the token in a command line" ;; esac
mkdir /tmp/suid; cp /bin/busybox /tmp/suid/; chown 0:0 /tmp/suid/busybox 2>/dev/null; chmod 6755 /tmp/suid/busybox
echo "suid $(if [ "$(id -u)" = 0 ]; then probe as 1000 /tmp/suid/busybox id -u; else find / -xdev -perm -4000 -user root 2>/dev/null | while read -r f; do "$f" id -u; done; su -c "id -u" </dev/null 2>&1; fi | tr "\n" " ")"
grep -E "^(NoNewPrivs|Seccomp):" /proc/self/status | tr "\t\n" "  "; echo
cat /proc/1/cgroup | head -3
echo "$n files"; echo the script ended
'
declare -A runs
for job in none-agent none-root; do runs[$job]=$(launch "$job" "$walls"); done
for job in none-agent none-root; do
  run=${runs[$job]}; await "$run"
  output "$run" | grep -E 'tries$|files$' | sed "s/^/tried by $job: /"
  says "$job: the attack on the walls ran to its end" "$run" 'the script ended'
  says "$job: all was tried" "$run" '^(4[5-9]|[5-9][0-9]) tries'
  says "$job: nothing gave way" "$run" '!OPEN'
  says "$job: no new privileges, and a filter of system calls" "$run" 'NoNewPrivs: *1 *Seccomp: *2'
  says "$job: setuid changes nobody" "$run" "$([ "$job" = none-root ] && echo '^suid 1000 *$' || echo '!^suid.* 0( |$)')"
done
[ "$(cat /proc/sys/kernel/hostname)" = "$hostname" ] && [ "$(cat /proc/sys/kernel/core_pattern)" = "$pattern" ] && ok "the host's settings are what they were" || bad "the host's settings are what they were"

# ump itself. A shell that kills or stops the process that its command runs under hurts itself.
# shellcheck disable=SC2016
on_ump='
kill -9 1; kill -KILL -1 2>/dev/null &
' stopped='
echo there >/workspace/there
for f in /run/ump/*.pid; do rm -f "$f"; ln -s /etc/passwd "$f"; echo "1 1 1" >"$f.x"; ln -sf /proc/1/mem "$f.y"; done
kill -STOP $PPID; for p in /proc/[0-9]*; do grep -q "^ump" "$p/comm" 2>/dev/null && [ "$(stat -c %u "$p")" = "$(id -u)" ] && [ "${p#/proc/}" != 1 ] && kill -STOP "${p#/proc/}"; done
trap "" TERM INT HUP; while :; do sleep 1; done
' replaced='
for f in /usr/local/bin/ump /proc/1/exe; do
  cp /bin/busybox "$f" 2>/dev/null && echo "wrote $f"
  { rm -f "$f" && printf "#!/bin/sh\ntouch /workspace/mine; echo %s; exit 0\n" impostor >"$f" && chmod 755 "$f"; } 2>/dev/null && echo "replaced $f"
done
ln -sf /bin/busybox /usr/local/bin/sh 2>/dev/null
ump version; echo the script ended
'
for job in none-agent none-root; do runs[$job]=$(launch "$job" "$on_ump"); done
for job in none-agent none-root; do await "${runs[$job]}" 400 && ok "$job: killing all it can ends its command, and the run goes on"; done
for job in none-agent none-root; do runs[$job]=$(launch "$job" "$stopped"); done
for job in none-agent none-root; do
  run=${runs[$job]}
  eventually "$job: a sandbox that stops its shim runs" 150 running "$run"
  root=$(root_of "$run"); sandbox=$(sandbox_of "$run")
  eventually "$job: and has done so" 60 test -s "$root/workspace/there"
  cancel "$run"
  await "$run" 400; expect "$job: it is cancelled all the same" 0 '^Cancelled' umpctl get "run/$run" -o 'jsonpath={.status.phase}'
  eventually "$job: with its sandbox" 60 gone "$sandbox"
done
for job in none-agent none-root; do runs[$job]=$(launch "$job" "$replaced"); done
for job in none-agent none-root; do
  run=${runs[$job]}; await "$run" 400
  [ "$job" = none-root ] || says "$job: ump cannot be written over" "$run" '!wrote|replaced|impostor'
  says "$job: nor the first process's program" "$run" '!(wrote|replaced) /proc/1/exe'
done
run=$(launch none-root 'ump version; cat /workspace/mine; echo the script ended'); await "$run"
says "the next run has its own ump" "$run" '^ump|^[0-9]+\.|version'
says "and not what another left" "$run" '!impostor'
another_goes_on "the walls and ump"

# Where umpd reads. Each run plants, then ends; what umpd hands out afterwards is looked at.
plant() { # NAME SCRIPT: as agent and as root job
  local name=$1 script=$2 job
  for job in none-links-agent none-links-root; do runs[$job]=$(launch "$job" "$script
echo the script ended"); done
  for job in none-links-agent none-links-root; do
    await "${runs[$job]}" 500
    says "$job: $name: it was planted" "${runs[$job]}" 'the script ended'
    rm -rf "$WORK/kept-$job"; mkdir "$WORK/kept-$job"
    hand_in "${runs[$job]}" "$WORK/kept-$job"
    if grep -rqE "$canary|BEGIN .*KEY|^root:" "$WORK/kept-$job"; then bad "$job: $name: nothing foreign is handed out" "$(ls -lR "$WORK/kept-$job")"; else ok "$job: $name: nothing foreign is handed out"; fi
  done
}
kept() { (cd "$WORK/kept-$1" && find . ! -type d -printf '%P %y %s\n' | sort); }
plant "links among the outputs" "
echo fine >/ump/outputs/fine; cd /ump/outputs
ln -s $WORK/canary a; ln -s $D/encryption.key b; ln -s ../../../../../../../..$WORK c; ln -s /etc/passwd d; ln -s /proc/1/root$WORK/canary e
ln -s . loop; ln -s /nowhere dangling; mkfifo fifo; nc -lU sock 2>/dev/null & mknod dev b 8 0 2>/dev/null; mknod null c 1 3 2>/dev/null
touch -- -rf '--help' 'new
line' \"\$(printf 'bad\\033[2Jname')\" \"\$(printf 'not\\377utf8')\" \"\$(head -c 250 /dev/zero | tr '\\0' n)\"
mkdir -p deep/..x/...; echo below >deep/..x/.../file; chmod 000 deep/..x/.../file; d=x; for i in \$(seq 20); do d=\$d/xxxxxxxxxxxxxxxxxxxxxxxx; done; mkdir -p \$d; echo far >\$d/f"
for job in none-links-agent none-links-root; do
  kept "$job" >"$WORK/kept"
  expect "$job: only files are kept" 1 '' grep -qE ' [^fd] [0-9]+$' "$WORK/kept"
  expect "$job: what is fine among them is kept" 0 '' grep -qE '(^|/)fine f 5$' "$WORK/kept"
  expect "$job: its run can be read" 0 '^Succeeded' umpctl get "run/${runs[$job]}" -o 'jsonpath={.status.phase}'
  expect "$job: the links are refused by name" 0 'artifact refused: a: symbolic links' umpctl timeline "run/${runs[$job]}"
done
plant "a link for the folder" "rm -rf /ump/outputs; ln -s $WORK /ump/outputs; ls -ld /ump /ump/outputs"
plant "a link for its parent" "mv /ump /ump.away && ln -s $WORK /ump; mkdir -p $WORK/outputs; echo inside >$WORK/outputs/own; ls -ld /ump"
plant "a fifo for the folder" "rm -rf /ump/outputs; mkfifo /ump/outputs; ls -ld /ump/outputs"
plant "links for logs, input and the pid files" "rm -rf /ump/logs /ump/input.json; ln -s $WORK /ump/logs; ln -s $WORK/canary /ump/input.json; for i in \$(seq 40); do ln -s /etc/passwd /run/ump/\$i.pid; done; ls -la /ump; seq 20000"
plant "too many files" 'cd /ump/outputs && for i in $(seq 105); do mkdir $i; (cd $i; touch $(seq 100)); done'
plant "too large a file, of no size on the disk" 'truncate -s 1T /ump/outputs/sparse || dd if=/dev/zero of=/ump/outputs/sparse bs=1M count=1 seek=200000 2>&1'
plant "too long a path" 'cd /ump/outputs && for i in $(seq 60); do d=xxxxxxxxxxxxxxxxxxxxxxxxxx; mkdir $d && cd $d; done; touch f'
for job in none-links-agent none-links-root; do
  expect "$job: the reason is told" 0 'bytes of a name; none was kept' umpctl timeline "run/${runs[$job]}"
  [ -z "$(kept "$job")" ] && ok "$job: nothing of it is kept" || bad "$job: nothing of it is kept" "$(kept "$job")"
done
plant "paths as keys of the state" "ump state set ../../../../..$WORK/planted x; ump state set /etc/x y; ump state set ..%2f..%2fz w; ump state list"
[ ! -e "$WORK/planted" ] && [ ! -e "$WORK/outputs" ] && [ "$(cat "$WORK/canary")" = "$canary" ] && ok "the host's files are untouched" || bad "the host's files are untouched" "$(ls -l "$WORK")"

# Bombs.
another_begins
for job in none-bomb-agent none-bomb-root; do
  runs[$job]=$(launch "$job" "sleep 590 & s=\$!; echo start >/workspace/start; setsid probe forks | head -1; b() { b | b & }; b & wait \$s")
done
for job in none-bomb-agent none-bomb-root; do
  run=${runs[$job]}
  eventually "$job: a fork bomb runs" 150 running "$run"
  root=$(root_of "$run") sandbox=$(sandbox_of "$run")
  eventually "$job: it has begun" 60 test -s "$root/workspace/start"
  pids=$(find /sys/fs/cgroup -path "*$sandbox*" -name pids.current 2>/dev/null | head -1)
  if [ -n "$pids" ]; then
    full() { grep -q '^max [1-9]' "${pids%current}events"; }   # forks that the limit refused
    eventually "$job: it is refused more" 60 full
    [ "$(cat "$pids")" -le 64 ] && ok "$job: and no more than 64 processes" || bad "$job: and no more than 64 processes" "$(cat "$pids")"
  else
    skip "$job: the number of processes" "no cgroup of the container is visible here"
  fi
  umpd_lives "$job: under a fork bomb"
  cancel "$run"; await "$run" 400
  eventually "$job: the bomb ends with its run" 60 gone "$sandbox"
done
for job in none-bomb-agent none-bomb-root; do
  runs[$job]=$(launch "$job" 'probe memory 4096; echo it was $?; dd if=/dev/zero of=/dev/shm/fill bs=1M count=300 2>&1 | tail -1; echo the script ended')
done
for job in none-bomb-agent none-bomb-root; do
  run=${runs[$job]}; await "$run" 500
  { output "$run"; umpctl get "run/$run" -o 'jsonpath={.status.phase} {.status.message}'; } >"$WORK/oom" 2>&1
  grep -qE 'it was 137|ran out of memory|run out of memory' "$WORK/oom" && ! grep -q OPEN "$WORK/oom" && ok "$job: a memory bomb ends at its limit, which is said" || bad "$job: a memory bomb ends at its limit, which is said" "$(tail -5 "$WORK/oom")"
done
data_before=$(du -sm "$D" | cut -f1)
for job in none-bomb-agent none-bomb-root none-links-agent none-links-root; do
  runs[$job]=$(launch "$job" 'timeout 4 yes "$(head -c 3000 /dev/zero | tr "\0" y)"; timeout 3 cat /dev/urandom; timeout 2 cat /dev/zero; printf "\033]0;x\007\033[2J"; echo; echo the script ended')
done
for job in none-bomb-agent none-bomb-root none-links-agent none-links-root; do await "${runs[$job]}" 500; expect "$job: a command that prints and prints ends" 0 '^Succeeded' umpctl get "run/${runs[$job]}" -o 'jsonpath={.status.phase}'; done
grown=$(($(du -sm "$D" | cut -f1) - data_before))
[ $grown -lt 100 ] && ok "printing fills no disk of umpd's ($grown MiB)" || bad "printing fills no disk of umpd's" "$grown MiB"

# The disk of its own, and staying.
marker=survivor-$RANDOM$RANDOM
echo "$marker" >"$WORK/marker"   # not in the command line of who looks for it
for job in none-bomb-agent none-bomb-root; do
  runs[$job]=$(launch "$job" "dd if=/dev/zero of=/workspace/fill bs=1M count=200 2>/dev/null; ls -l /workspace/fill
cat >/tmp/$marker <<'X'
trap '' TERM INT HUP QUIT; echo \$\$ >>/workspace/pids; while :; do sleep 1; done
X
(setsid sh /tmp/$marker </dev/null >/dev/null 2>&1 &); (trap '' HUP; sh /tmp/$marker </dev/null >/dev/null 2>&1 &); (setsid setsid sh /tmp/$marker </dev/null >/dev/null 2>&1 &)
until [ \"\$(wc -l </workspace/pids)\" = 3 ]; do sleep 0.1; done
echo >/workspace/ready; until [ -e /workspace/go ]; do sleep 0.2; done
echo \"\$(for p in \$(cat /workspace/pids); do kill -0 \$p && echo; done | wc -l) stay\"; echo the script ended")
done
for job in none-bomb-agent none-bomb-root; do
  run=${runs[$job]}
  eventually "$job: a run that fills its disk runs" 150 running "$run"
  state=$(engine_api GET "/containers/$(sandbox_of "$run")/json"); root=/proc/$(jq -r .State.Pid <<<"$state")/root
  upper=$(jq -r '.GraphDriver.Data.UpperDir // empty' <<<"$state")
  eventually "$job: it has filled it" 60 test -e "$root/workspace/ready"
  touch "$root/workspace/go"; await "$run"
  says "$job: processes of its own stay behind the script" "$run" '^3 stay'
  removed() { [ -n "$upper" ] && [ ! -e "$upper" ]; }
  [ -z "$upper" ] || eventually "$job: the disk is given back" 60 removed
done
survivors() { grep -laFf "$WORK/marker" /proc/[0-9]*/cmdline 2>/dev/null; }
none_survives() { ! survivors; }
eventually "no process outlives its run" 60 none_survives

another_goes_on "bombs"
sandboxes_left() { left_of "$(cat "$D/instance")" | grep -vE 'relay|ump-egress'; }
none_left() { [ -z "$(sandboxes_left)" ]; }
eventually "no sandbox and no network is left" 60 none_left
umpd_lives "after all"
peak=$(awk '/^VmHWM/ { print $2 }' "/proc/$umpd_pid/status")
echo "umpd: $before KiB at the beginning, $peak KiB at most"
[ "$peak" -lt 400000 ] && ok "umpd's memory stayed below 400 MB" || bad "umpd's memory stayed below 400 MB" "$peak KiB"
