#!/bin/sh
# Compiles the binary of the image for TARGETARCH, here or for the other architecture. It runs in the image of the compiler.
#
#   compile.sh prepare        gets what compiles for the other architecture, and what lists licences
#   compile.sh build FOLDER   builds the binary, and puts it there with the licences of what it is linked with
#   compile.sh target         says for what it builds, and with which linker
set -eu

here=$(uname -m)
case "${TARGETARCH:-}" in
  amd64) there=x86_64 ;;
  arm64) there=aarch64 ;;
  '') there=$here ;;
  *) echo "compile: no image is built for $TARGETARCH; amd64 and arm64 are" >&2; exit 2 ;;
esac
target=$there-unknown-linux-gnu
# Debian's names of packages have a hyphen, those of programs as they are.
package=$(echo "gcc-$there-linux-gnu" | tr _ -)
linker=cc
[ "$here" = "$there" ] || linker=$there-linux-gnu-gcc

case "${1:-}" in
  prepare)
    rustup target add "$target"
    packages=python3
    [ "$linker" = cc ] || packages="$packages $package libc6-dev-$(echo "$there" | sed 's/x86_64/amd64/; s/aarch64/arm64/')-cross"
    apt-get update -qq
    # shellcheck disable=SC2086 # each is a word
    apt-get install -qq --no-install-recommends $packages
    ;;
  build)
    name=$(echo "$target" | tr '[:lower:]-' '[:upper:]_')
    export "CARGO_TARGET_${name}_LINKER=$linker"
    export "CC_$(echo "$target" | tr - _)=$linker"
    # No path of the machine that builds it is in the binary, so the same sources make the same bytes anywhere (make reproducible).
    cargo=${CARGO_HOME:-$HOME/.cargo}
    export RUSTFLAGS="--remap-path-prefix=$PWD=/build --remap-path-prefix=$cargo=/cargo"
    export CFLAGS="-ffile-prefix-map=$PWD=/build -ffile-prefix-map=$cargo=/cargo"
    cargo build --locked --profile dist --no-default-features --bin allclear --target "$target"
    scripts/sbom.py
    mkdir -p "$2"
    cp "target/$target/dist/allclear" target/sbom/THIRD-PARTY-LICENSES LICENSE "$2"
    ;;
  target) echo "$target $linker" ;;
  *) echo 'compile: prepare, build FOLDER or target' >&2; exit 2 ;;
esac
