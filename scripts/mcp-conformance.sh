#!/usr/bin/env bash
# Holds `allclear mcp` to the conformance suite of the Model Context Protocol, over a bridge: the suite speaks HTTP alone.
# Most of its scenarios call tools that only a server made for it has; scripts/mcp-conformance.yml lists those, and it fails,
# too, where one of them begins to pass. Says so and succeeds where npm is missing: what is not installed is not checked. Not
# part of `make test`, which has the official SDK's client.
set -euo pipefail

# Pinned: scenarios come with its versions. It needs a newer node than Debian's; npm has one.
readonly CONFORMANCE_VERSION=0.1.16 NODE_VERSION=22.23.3

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly HOME_OF_IT=$PWD/target/mcp-conformance
readonly PROGRAM=${PROGRAM:-$PWD/target/debug/allclear}

if ! command -v npm >/dev/null; then
  echo 'mcp-conformance: npm is not installed, nothing was checked' >&2
  exit 0
fi
[[ -x $PROGRAM ]] || { echo "mcp-conformance: $PROGRAM is missing: cargo build" >&2; exit 1; }

mkdir -p "$HOME_OF_IT"
[[ -f $HOME_OF_IT/package.json ]] || echo '{"private": true}' >"$HOME_OF_IT/package.json"
npm install --prefix "$HOME_OF_IT" --no-audit --no-fund --silent \
  "@modelcontextprotocol/conformance@$CONFORMANCE_VERSION" "node@$NODE_VERSION"

# The input of the bridge ends with this script, and so does the bridge.
coproc BRIDGE { python3 scripts/mcp-bridge.py "$PROGRAM"; }
read -r address <&"${BRIDGE[0]}"
"$HOME_OF_IT/node_modules/node/bin/node" "$HOME_OF_IT/node_modules/@modelcontextprotocol/conformance/dist/index.js" \
  server --url "$address" --expected-failures scripts/mcp-conformance.yml --output-dir "$HOME_OF_IT/results"
