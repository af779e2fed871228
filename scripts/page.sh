#!/usr/bin/env bash
# Looks at the status page in headless Chromium (scripts/page.mjs). Needs chromium, node and npm; two packages are installed by name into
# target/, which git ignores. Says so and succeeds where the browser is missing: what is not installed is not checked.
set -euo pipefail

# Pinned: axe's rules grow with its versions.
readonly AXE_VERSION=4.14.1 PUPPETEER_VERSION=24.43.1

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly HOME_OF_IT=$PWD/target/page

chromium=
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then
    chromium=$(command -v "$name")
    break
  fi
done
if [[ -z $chromium ]] || ! command -v npm >/dev/null; then
  echo 'page: chromium or npm is not installed, nothing was checked' >&2
  exit 0
fi

mkdir -p "$HOME_OF_IT"
[[ -f $HOME_OF_IT/package.json ]] || echo '{"private": true}' >"$HOME_OF_IT/package.json"
npm install --prefix "$HOME_OF_IT" --no-audit --no-fund --silent "axe-core@$AXE_VERSION" "puppeteer-core@$PUPPETEER_VERSION"

# The test binary of the library, as cargo names it.
test=$(cargo test --locked --lib --no-run --message-format json 2>/dev/null |
  sed -n 's/.*"src_path":"[^"]*\/src\/lib.rs".*"executable":"\([^"]*\/allclear-[^"]*\)".*/\1/p' | tail -n 1)
[[ -x $test ]] || { echo 'page: the tests of the library do not build; see cargo test --lib' >&2; exit 1; }

PAGE_MODULES=$HOME_OF_IT PAGE_SCREENSHOTS=$PWD/target/screenshots PAGE_CHROMIUM=$chromium PAGE_TEST=$test node scripts/page.mjs
