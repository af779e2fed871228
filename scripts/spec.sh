#!/usr/bin/env bash
# Searches the hand-written model of group agreement (docs/internals/spec) with Spin, and its mutants, each of which has to break the
# promise that it is named for. Needs spin and gcc. `make spec`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for tool in spin gcc; do
  command -v "$tool" > /dev/null || { echo "spec: $tool is not installed; Debian has it as a package of that name" >&2; exit 2; }
done

# MiB that one search may hold, and the seconds that it may take. Beyond these it has failed.
memory_max=6000
seconds_max=900
model=$PWD/docs/internals/spec/group.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Searches the model with these definitions; leaves what Spin says in $work/said.
search() {
  (
    cd "$work"
    spin "$@" -a "$model"
    gcc -O2 -DSAFETY -DCOLLAPSE -DMEMLIM="$memory_max" -DVECTORSZ=4096 -o pan pan.c
    timeout "$seconds_max" ./pan -m10000000 -n
  ) > "$work/said" 2>&1 || true
}

row() { printf '%-47s %-10s %12s  %s\n' "$@"; }

# What breaks in a mutant, by the text of the assertion that fails.
promise() {
  case $(grep -m 1 'assertion violated' "$work/said") in
    *'unfounded'*) echo SAFE-2 ;;
    *'violated set'* | *'violated (set'*) echo SAFE-3 ;;
    *'old>>'* | *'made>>v)&1) (at'*) echo SAFE-1 ;;
    *'votes& ~'*) echo GA-5 ;;
    *'!((set&&ok))'*) echo GA-6 ;;
    '') echo none ;;
    *) echo another ;;
  esac
}

# holds NAME DEFINITIONS …: every state is visited, and nothing breaks.
holds() {
  local name=$1 states verdict
  shift
  search "$@"
  states=$(awk '/states, stored/ { print $1; exit }' "$work/said")
  if grep -q 'errors: 0' "$work/said" && ! grep -qE 'out of memory|max search depth|not enough' "$work/said"; then
    verdict='holds'
  else
    verdict="FAILED: $(promise)" failed=1
    grep -vE '^ ' "$work/said" | tail -n 20 >&2
  fi
  row "$name" 'holds' "${states:-?}" "$verdict"
}

# dies NAME PROMISE DEFINITIONS …: that promise is the first that breaks.
dies() {
  local name=$1 wanted=$2 broken
  shift 2
  search "$@"
  broken=$(promise)
  [[ $broken == "$wanted" ]] || failed=1
  row "$name" "$wanted" '' "$([[ $broken == "$wanted" ]] && echo dies || echo "FAILED: $broken breaks")"
}

row 'two members' 'expected' 'states' 'found'
holds 'A to B' -DFIRST=2
holds 'A to B, two processes in each' -DWORKERS=2
holds 'A to B, one rollout fails' -DFAILS=1
holds 'A to B, one gives up' -DWITHDRAWS=1
holds 'A to B, a ledger is restored' -DRESTORES=1 -DNUMBERS=4
holds 'A to B and back in one' -DFIRST=3
holds 'A to B and back in both' -DFIRST=3 -DSECOND=3
holds 'A to B to C in both' -DFIRST=3 -DSECOND=3 -DONWARD
holds 'A to B and back in one, a ledger is restored' -DFIRST=3 -DRESTORES=1 -DNUMBERS=4
holds 'A to B and back in one, fails, gives up' -DFIRST=3 -DFAILS=1 -DWITHDRAWS=1 -DNUMBERS=4
row 'three members' '' '' ''
holds 'A to B' -DN=3
holds 'A to B and back in one' -DN=3 -DFIRST=3
holds 'A to B, fails, gives up' -DN=3 -DFAILS=1 -DWITHDRAWS=1
row 'mutants' '' '' ''
dies 'votes without a fresh look' SAFE-2 -DFIRST=3 -DSECOND=3 -DNO_RECHECK
dies 'writes without compare-and-set' GA-5 -DWORKERS=2 -DFIRST=3 -DNO_CAS
dies 'acts on records instead of votes' SAFE-3 -DFIRST=3 -DSECOND=3 -DFACTS
dies 'gives up what it has voted for' GA-6 -DWITHDRAWS=1 -DWITHDRAW_AFTER_VOTE
dies 'takes what was gone past for dead' GA-6 -DFIRST=3 -DPAST_IS_DEAD
dies 'gives numbers out again after a restore' SAFE-1 -DRESTORES=1 -DNUMBERS=4 -DOLD_NUMBERS
dies 'names an invalidation by the tag' SAFE-1 -DFIRST=4 -DSECOND=4 -DNUMBERS=4 -DCALM=1 -DTAG_REFERENCE
exit "$failed"
