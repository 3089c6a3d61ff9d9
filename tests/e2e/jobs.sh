# Sourced after lib.sh: jobs whose scripted model does what the run's input says, and waiting for
# their runs.
# shellcheck shell=bash
patience=90   # seconds that nothing takes on an idle machine

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
