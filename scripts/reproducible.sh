#!/usr/bin/env bash
# Builds the binary of the image twice, in two folders of different names, from what the image's context
# holds of HEAD, and compares the bytes.
# The compiler, the linker and the crates are those of this machine; an image has the ones that its base names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# The lines of .dockerignore that let something in.
mapfile -t inputs < <(sed -n 's/^!//p' .dockerignore)
folder=$(mktemp --directory)
trap 'rm -r "$folder"' EXIT

for name in one another-place; do
  mkdir -p "$folder/$name"
  git archive HEAD -- "${inputs[@]}" | tar --extract --directory "$folder/$name"
  printf 'reproducible: building in %s\n' "$name" >&2
  (cd "$folder/$name" && env -u CARGO_TARGET_DIR deploy/image/compile.sh build made >/dev/null)
  sha256sum "$folder/$name/made/"* | sed "s:$folder/::" >&2
  mv "$folder/$name/made" "$folder/made-$name"
  rm -r "${folder:?}/$name"
done
diff --recursive "$folder/made-one" "$folder/made-another-place"
echo 'reproducible: two builds in two folders made the same bytes'
