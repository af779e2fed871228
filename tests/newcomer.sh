#!/usr/bin/env bash
# What a newcomer does: clones the repository, and types what README and docs/quick-start.md print, in their order, as far as one machine
# is enough for it. The commands are read from the documents, and from what `demo --stay` prints: a text that changes is what is followed.
# The first command that fails ends it. At the end it prints how long each took.
#
# Left out, and said so: `make …`, which is not how a newcomer begins, and the parts for kind and for EKS, which need what is not here.
# CARGO_TARGET_DIR, where it is set, saves the cold build, and the table says so. NEWCOMER_SECONDS_MAX bounds the whole, 3600 by default.
set -euo pipefail

readonly SECONDS_MAX=${NEWCOMER_SECONDS_MAX:-3600}
# A step that is no build. The longest demo takes 40 seconds on a quiet machine.
readonly STEP_SECONDS_MAX=240
if [[ -z ${NEWCOMER_BOUNDED:-} ]]; then
  NEWCOMER_BOUNDED=1 exec timeout --kill-after=30 "$SECONDS_MAX" "${BASH_SOURCE[0]}" "$@"
fi

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp --directory)
staying='' table=''

fail() {
  printf 'newcomer: %s\n' "$1" >&2
  exit 1
}

# What was started ends, and nothing stays behind: every file of the demo and of kubectl is in the folder that goes.
clean() {
  local code=$?
  if [[ -n $staying ]]; then
    kill -TERM "$staying" 2>/dev/null || true
    wait "$staying" 2>/dev/null || true
  fi
  rm -rf "$work"
  exit "$code"
}
trap clean EXIT
trap 'exit 143' INT TERM

# The commands after a `$` in the console blocks below a heading of a page, without their comments: commands FILE HEADING
commands() {
  awk -v heading="## $2" '
    /^## / { within = ($0 == heading) }
    /^```/ { block = within && $0 == "```console"; next }
    block && /^\$ / { sub(/^\$ /, ""); sub(/ +# .*$/, ""); print }' "$1"
}

# Some commands, or the document has another form than this script thinks.
expect() {
  local found
  found=$(commands "$1" "$2")
  [[ -n $found ]] || fail "$1 has no commands under \"$2\""
  printf '%s\n' "$found"
}

now() { date +%s%N; }

# Says how long something took: took BEGINNING WHAT
took() {
  local ms=$((($(now) - $1) / 1000000))
  table+=$(printf '%7d.%d  %s' $((ms / 1000)) $((ms % 1000 / 100)) "$2")$'\n'
  total_ms=$((${total_ms:-0} + ms))
}

# Runs a command as a person would at the top of the clone: step COMMAND [SECONDS_MAX]
step() {
  local began
  began=$(now)
  printf '$ %s\n' "$1"
  if ! timeout --kill-after=10 "${2:-$STEP_SECONDS_MAX}" bash -c "${settings:+$settings; }$1" >"$work/said" 2>&1 </dev/null; then
    tail -40 "$work/said" >&2
    fail "this failed: $1"
  fi
  took "$began" "$1"
}

# Starts the demo that stays, and waits until it says what to do next: stay COMMAND
stay() {
  local began
  began=$(now)
  printf '$ %s\n' "$1"
  # Cargo becomes the program, and bash becomes cargo, so this is the process that Ctrl-C would reach.
  : >"$work/stays"
  bash -c "exec $1" >>"$work/stays" 2>&1 </dev/null &
  staying=$!
  until grep -q '^Still running' "$work/stays" && grep -q '^  look closer' "$work/stays"; do
    kill -0 "$staying" 2>/dev/null || { cat "$work/stays" >&2; fail "this ended too early: $1"; }
    (($(now) - began < STEP_SECONDS_MAX * 1000000000)) || fail "this did not come to its end: $1"
    sleep 0.2
  done
  took "$began" "$1"
}

# What a line of that demo says: printed LABEL
printed() {
  local found
  found=$(sed -n "/^Still running/,\$ s/^  $1  *//p" "$work/stays" | head -1)
  [[ -n $found ]] || fail "demo --stay does not print the line \"$1\""
  printf '%s\n' "$found"
}

# Does what that demo prints.
follow_printed() {
  local label
  settings=$(printed settings)
  step "curl --silent --show-error --fail '$(printed 'status page')'"
  for label in 'ask why' 'roll out' 'look closer'; do
    step "$(printed "$label")"
  done
}

# Ends it as Ctrl-C does.
leave() {
  local began command
  while IFS= read -r command; do
    case $command in
      # It goes on until Ctrl-C; the name of the context is the reader's own.
      *' run --dry-run '*) step "timeout --preserve-status --signal=INT 15 ${command/NAME/stand-in}" ;;
      *) step "$command" ;;
    esac
  done < <(expect README.md 'Ask your own cluster, changing nothing' && expect README.md 'Ask it')
  began=$(now)
  kill -INT "$staying"
  for ((i = 0; i < 100; i++)); do
    kill -0 "$staying" 2>/dev/null || break
    sleep 0.1
  done
  kill -0 "$staying" 2>/dev/null && fail 'demo --stay does not end within 10 s of Ctrl-C'
  wait "$staying" || fail "demo --stay ended with $? after Ctrl-C"
  staying='' settings=''
  took "$began" 'Ctrl-C'
}

target=${CARGO_TARGET_DIR:-}
kubectl=$top/.venv/bin
unset CARGO_TARGET_DIR RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS
# Homes of cargo and rustup stay where they are; everything else that a program writes at home goes with the folder.
export CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup} CARGO_TERM_COLOR=never
mkdir "$work/home" "$work/tmp"
export HOME=$work/home TMPDIR=$work/tmp PATH=$work/allclear/target/release:$PATH:$kubectl
command -v kubectl >/dev/null || fail 'kubectl is missing; make test-setup gets it'

began=$(now)
git clone --quiet "$top" "$work/allclear"
took "$began" 'git clone'
cd "$work/allclear"
if [[ -n $target ]]; then
  ln -s "$target" target
fi

follow() {
  local command
  while IFS= read -r command; do
    case $command in
      make\ *) printf 'left out: %s\n' "$command" ;;
      # The page cannot know the name of this file; the program prints it.
      '. '*) [[ -n $settings ]] || fail "$1 has settings before there are any" ;;
      *' --stay'*) stay "$command" && follow_printed ;;
      'cargo run '*)
        [[ -z $staying ]] || leave
        step "$command" "$SECONDS_MAX"
        ;;
      *) step "$command" ;;
    esac
  done < <(expect "$1" "$2")
}

settings=''
follow README.md 'See it work'
follow docs/quick-start.md 'On this machine'
[[ -z $staying ]] || leave
printf 'left out: the parts of docs/quick-start.md for a local cluster and for EKS\n'

printf '\nseconds    %s\n%s%7d.%d  in all\n' "what${target:+ (the build was warm)}" "$table" $((total_ms / 1000)) $((total_ms % 1000 / 100))
