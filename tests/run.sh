#!/usr/bin/env bash
# Runs the suites and closes with one line: N passed, N failed, N skipped. Called by ./dev test.
# A suite that cannot run here is counted as skipped, with its reason.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

SUITES=(tree unit engine e2e attacks conformance asan fuzz tsan)
# Under ASan and UBSan every unit program runs; under TSan those whose threads meet.
SANITISED=(test_base test_apis test_runs test_broker test_engine test_models test_agent test_store
  test_server test_controllers test_client test_umpd test_umpctl)
THREADED=(test_base test_runs test_broker test_engine test_agent test_store test_controllers test_server)
declare -A BUDGET=([tree]=10 [unit]=120 [engine]=240 [e2e]=240 [attacks]=300 [conformance]=180 [asan]=300 [fuzz]=60 [tsan]=240)

wanted=()
for argument in "$@"; do
  case $argument in
    --all) export UMPTEENTH_ALL=1 ;;
    -*) echo "run.sh: unknown flag $argument" >&2; exit 2 ;;
    *)
      [[ " ${SUITES[*]} " == *" $argument "* ]] || { echo "run.sh: no suite $argument; there are: ${SUITES[*]}" >&2; exit 2; }
      wanted+=("$argument") ;;
  esac
done
# Without names: all of them. --all makes the campaigns in them long and adds the long attacks.
[ ${#wanted[@]} -gt 0 ] || wanted=("${SUITES[@]}")

passed=0 failed=0 skipped=0
results=$(mktemp -d)
engine_dir=
cleanup() {
  # shellcheck disable=SC2046
  kill $(jobs -p) 2>/dev/null && wait
  [ -z "$engine_dir" ] || tests/support/engine.sh down "$engine_dir" >/dev/null 2>&1
  rm -rf "$results" ${engine_dir:+"$engine_dir"}
}
trap cleanup EXIT
trap 'exit 130' INT TERM

skip() { echo "SKIPPED: $1: $2"; skipped=$((skipped + 1)); }
build() { # preset targets…
  local preset=$1 dir=build; shift
  [ "$preset" = release ] || dir=build-$preset
  cmake --preset "$preset" >"$results/cmake.log" 2>&1 || { cat "$results/cmake.log"; return 1; }
  cmake --build "$dir" -j "$(nproc)" ${1:+--target "$@"} >"$results/build.log" 2>&1 || { tail -60 "$results/build.log"; return 1; }
}

# One gtest program; its counts come from its own report, so a crash counts as a failure.
run_gtest() { # program [wrapper…]
  local program=$1 name report; shift
  name=$(basename "$program"); report=$results/$name.json
  rm -f "$report"
  local begin=$SECONDS
  "$@" "$program" --gtest_brief=1 --gtest_output="json:$report" >"$results/$name.log" 2>&1
  local rc=$?
  if [ ! -s "$report" ]; then
    tail -40 "$results/$name.log"
    echo "FAILED: $name ended with $rc and no report"
    failed=$((failed + 1)); return
  fi
  local t f s
  read -r t f s < <(jq -r '[.testsuites[].testsuite[]] | [length, (map(select(.failures)) | length), (map(select(.result=="SKIPPED")) | length)] | @tsv' "$report")
  [ "$rc" = 0 ] || [ "$f" -gt 0 ] || f=1
  passed=$((passed + t - f - s)); failed=$((failed + f)); skipped=$((skipped + s))
  [ "$f" = 0 ] || grep -E -A12 'Failure$|^\[ +FAILED|ERROR: |WARNING: ThreadSanitizer' "$results/$name.log" | head -120
  [ "$s" = 0 ] || grep -A3 -iE 'skipped$' "$results/$name.log" | grep -v '^--' | sed 's/^/  /' | head -20
  echo "  $name: $((t - f - s)) passed, $f failed, $s skipped in $((SECONDS - begin)) s"
}

# A script that prints its own closing line. begin_script sets its pid, for end_script.
begin_script() { # name command…
  local name=$1; shift
  date +%s >"$results/$name.begin"
  "$@" >"$results/$name.log" 2>&1 &
  script_pid=$!
}
end_script() { # name pid
  local name=$1 line rc=0 took log=$results/$1.log
  wait "$2" || rc=$?
  took=$(($(stat -c %Y "$log") - $(cat "$results/$name.begin")))   # its last output is its closing line
  line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -1)
  if [ -z "$line" ]; then tail -40 "$log"; echo "FAILED: $name ended with $rc and no closing line"; failed=$((failed + 1)); return; fi
  local p f s; read -r p f s < <(tr -dc '0-9 \n' <<<"$line")
  [ "$rc" = 0 ] || [ "$f" -gt 0 ] || f=1
  passed=$((passed + p)); failed=$((failed + f)); skipped=$((skipped + s))
  # What failed with all that it said; what did not run with its reason.
  awk '/^(FAILED|SKIPPED)/ { print; below = /^FAILED/; next } /^    / { if (below) print; next } { below = 0 }' "$log" | head -300
  [ "$f" = 0 ] || tail -20 "$log"
  echo "  $name: $line in $took s"
}
run_script() { begin_script "$@"; end_script "$1" "$script_pid"; }

need_engine() {
  [ -z "$engine_dir" ] || return 0
  [ "$(id -u)" = 0 ] || { engine_reason="needs root"; return 1; }
  engine_dir=$(mktemp -d)
  local socket
  socket=$(tests/support/engine.sh up "$engine_dir" 2>"$results/engine.log" | tail -1) || { engine_reason="no engine: $(tail -1 "$results/engine.log")"; return 1; }
  export UMPTEENTH_ENGINE=unix://$socket
}

suite_tree() { build release test_tree && run_gtest build/bin/test_tree; }
suite_unit() {
  build release || return 1
  local program
  for program in build/bin/test_*; do
    case $program in *_engine | *test_tree | *test_attacks | *test_e2e) ;; *) run_gtest "$program" ;; esac
  done
}
suite_engine() {
  build release || return 1
  need_engine || { skip engine "$engine_reason"; return 0; }
  local program
  for program in build/bin/test_*_engine; do
    case $program in *attacks_engine) ;; *) run_gtest "$program" ;; esac
  done
}
suite_e2e() {
  build release || return 1
  need_engine || { skip e2e "$engine_reason"; return 0; }
  # Three at a time, the longest first: much of each is waiting.
  local names=(runs outage person start input container docs) name
  local -A pids=()
  [ ${#names[@]} = "$(find tests/e2e -name '*_e2e.sh' | wc -l)" ] || { echo "FAILED: tests/e2e has scripts that run.sh does not name"; failed=$((failed + 1)); }
  for name in "${names[@]}"; do
    while [ "$(jobs -pr | wc -l)" -ge 3 ]; do sleep 0.2; done
    begin_script "${name}_e2e.sh" "tests/e2e/${name}_e2e.sh"
    pids[$name]=$script_pid
  done
  for name in "${names[@]}"; do end_script "${name}_e2e.sh" "${pids[$name]}"; done
}
suite_attacks() {
  build release || return 1
  need_engine || { skip attacks "$engine_reason"; return 0; }
  # Three at a time, the longest first: each has a lab of its own, and much of it is waiting. Those
  # whose probes have deadlines come before the bombs and floods, which load the machine.
  local names=(egress reach sandbox flood broker loss stand_in) name attachment only at_once
  local -A pids=()
  [ ${#names[@]} = "$(find tests/attacks -name '*_attack.sh' | wc -l)" ] || { echo "FAILED: tests/attacks has scripts that run.sh does not name"; failed=$((failed + 1)); }
  for name in "${names[@]}"; do
    # Minutes of changes to a host's firewall, each waited for.
    if [ -z "${UMPTEENTH_ALL:-}" ] && [ "$name" = egress ]; then skip egress_attack.sh "long: ./dev test --all attacks"; continue; fi
    # What only one of the attachments can meet is run on that one.
    only=$(sed -n 's/^# attachment: //p' "tests/attacks/${name}_attack.sh")
    for attachment in ${only:-namespace network}; do
      at_once=3; [ "$name" != sandbox ] || [ "$attachment" != "${only:-namespace}" ] || at_once=1
      while [ "$(jobs -pr | wc -l)" -ge "$at_once" ]; do sleep 0.2; done
      ATTACHMENT=$attachment begin_script "${name}_attack.sh on $attachment" "tests/attacks/${name}_attack.sh"
      pids[$name $attachment]=$script_pid
    done
  done
  for name in "${names[@]}"; do
    for attachment in namespace network; do
      [ -z "${pids[$name $attachment]:-}" ] || end_script "${name}_attack.sh on $attachment" "${pids[$name $attachment]}"
    done
  done
}
suite_conformance() {
  build release || return 1
  need_engine || { skip conformance "$engine_reason"; return 0; }
  local script
  for script in tests/conformance/*_conformance.sh; do run_script "$(basename "$script")" "$script"; done
}
# Killing and power-loss rounds run in release: they test what is on disk.
NOT_SANITISED='-*Crash*:Kubectl.*'
suite_asan() {
  build dev "${SANITISED[@]}" || return 1
  local name
  local symbols=external_symbolizer_path=/usr/bin/addr2line
  export ASAN_OPTIONS=detect_leaks=1:$symbols UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:$symbols
  for name in "${SANITISED[@]}"; do GTEST_FILTER=$NOT_SANITISED run_gtest "build-dev/bin/$name" setarch -R; done
}
suite_fuzz() {
  build dev $(cd tests/fuzz && ls ./*_fuzz.cc | sed 's|./\(.*\)_fuzz.cc|fuzz_\1|') || return 1
  run_script fuzz tests/fuzz/run.sh "${UMPTEENTH_ALL:+120}"
}
suite_tsan() {
  build tsan "${THREADED[@]}" || return 1
  local name
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:external_symbolizer_path=/usr/bin/addr2line
  for name in "${THREADED[@]}"; do GTEST_FILTER=$NOT_SANITISED run_gtest "build-tsan/bin/$name" setarch -R; done
}

for suite in "${wanted[@]}"; do
  echo "== $suite"
  begin=$SECONDS
  "suite_$suite" || { echo "FAILED: $suite could not be built"; failed=$((failed + 1)); }
  took=$((SECONDS - begin))
  over=; [ "$took" -le "${BUDGET[$suite]}" ] || over=", OVER if nothing was built"
  echo "== $suite: $took s (budget ${BUDGET[$suite]} s without building$over)"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
