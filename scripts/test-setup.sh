#!/usr/bin/env bash
# Gets what the adapter and process tests need beside Rust: moto (CloudFront's XML and paging, STS) in .venv, and
# redis-server. Safe to repeat: what is there already is left alone, and then it is silent.
set -euo pipefail

# Pinned: the tests know this version's departures from the real service (tests/adapter/cloudfront.rs).
readonly MOTO_VERSION=5.2.5

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly VENV=$PWD/.venv

fail() {
  printf 'test-setup: %s\n' "$*" >&2
  exit 1
}

# Runs a step quietly; shows what it said only when it fails.
step() {
  local name=$1 output
  shift
  output=$("$@" 2>&1) || fail "$name failed:"$'\n'"$output"
}

moto_is_there() {
  [[ -x $VENV/bin/moto_server ]] &&
    [[ $("$VENV/bin/python" -c 'from importlib.metadata import version; print(version("moto"))' 2>/dev/null) == "$MOTO_VERSION" ]]
}

if ! moto_is_there; then
  command -v python3 >/dev/null || fail 'python3 is missing; install Python 3.9 or newer (Debian: apt-get install python3 python3-venv)'
  printf 'test-setup: installing moto %s into .venv\n' "$MOTO_VERSION"
  # --clear: a half-made environment from an interrupted run is not worth repairing.
  step 'making .venv (Debian: apt-get install python3-venv)' python3 -m venv --clear "$VENV"
  step "installing moto $MOTO_VERSION" "$VENV/bin/pip" install --quiet --disable-pip-version-check "moto[server]==$MOTO_VERSION"
  moto_is_there || fail "moto $MOTO_VERSION was installed, but $VENV/bin/moto_server does not run"
fi

if ! command -v redis-server >/dev/null; then
  command -v apt-get >/dev/null || fail 'redis-server is missing; install Redis 6 or newer and put it in PATH'
  sudo=()
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || fail 'redis-server is missing; run as root: apt-get install redis-server'
    sudo=(sudo)
  fi
  printf 'test-setup: installing redis-server\n'
  step 'updating the package index' "${sudo[@]}" apt-get update -qq
  step 'installing redis-server' "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends redis-server
  # Debian's redis-tools/redis-server may start a system service; the tests start their own servers on free ports.
fi
