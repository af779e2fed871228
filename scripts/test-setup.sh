#!/usr/bin/env bash
# Gets what the tests need beside Rust: moto (CloudFront's XML and paging, STS) and dulwich (a git server that is not git) in
# .venv, git, and redis-server. Safe to repeat: what is there already is left alone, and then it is silent.
set -euo pipefail

# Pinned: the tests know these versions' departures from the real services (tests/adapter/cloudfront.rs, tests/forge/git/dulwich.rs).
readonly MOTO_VERSION=5.2.5
readonly DULWICH_VERSION=1.2.21

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

# Whether .venv has a package in exactly this version.
is_there() {
  [[ -x $VENV/bin/python ]] &&
    [[ $("$VENV/bin/python" -c 'import sys; from importlib.metadata import version; print(version(sys.argv[1]))' "$1" 2>/dev/null) == "$2" ]]
}

moto_is_there() {
  [[ -x $VENV/bin/moto_server ]] && is_there moto "$MOTO_VERSION"
}

if ! moto_is_there; then
  command -v python3 >/dev/null || fail 'python3 is missing; install Python 3.9 or newer (Debian: apt-get install python3 python3-venv)'
  printf 'test-setup: installing moto %s into .venv\n' "$MOTO_VERSION"
  # --clear: a half-made environment from an interrupted run is not worth repairing.
  step 'making .venv (Debian: apt-get install python3-venv)' python3 -m venv --clear "$VENV"
  step "installing moto $MOTO_VERSION" "$VENV/bin/pip" install --quiet --disable-pip-version-check "moto[server]==$MOTO_VERSION"
  moto_is_there || fail "moto $MOTO_VERSION was installed, but $VENV/bin/moto_server does not run"
fi

if ! is_there dulwich "$DULWICH_VERSION"; then
  printf 'test-setup: installing dulwich %s into .venv\n' "$DULWICH_VERSION"
  step "installing dulwich $DULWICH_VERSION" "$VENV/bin/pip" install --quiet --disable-pip-version-check "dulwich==$DULWICH_VERSION"
fi

# Gets a program from the distribution, where it is missing.
program() {
  local name=$1 package=$2 version=$3 sudo=()
  command -v "$name" >/dev/null && return
  command -v apt-get >/dev/null || fail "$name is missing; install $version or newer and put it in PATH"
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || fail "$name is missing; run as root: apt-get install $package"
    sudo=(sudo)
  fi
  printf 'test-setup: installing %s\n' "$package"
  step 'updating the package index' "${sudo[@]}" apt-get update -qq
  step "installing $package" "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "$package"
}

program git git 'git 2.31'
# Debian's redis-tools/redis-server may start a system service; the tests start their own servers on free ports.
program redis-server redis-server 'Redis 6'
