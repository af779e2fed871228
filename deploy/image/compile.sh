#!/bin/sh
# Compiles the binary of the image for TARGETARCH, here or for the other architecture. It runs in the image of the compiler.
#
#   compile.sh prepare        gets what compiles for the other architecture
#   compile.sh build FILE     builds the binary and puts it at FILE
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
    if [ "$linker" != cc ]; then
      apt-get update -qq
      apt-get install -qq --no-install-recommends "$package" "libc6-dev-$(echo "$there" | sed 's/x86_64/amd64/; s/aarch64/arm64/')-cross"
    fi
    ;;
  build)
    name=$(echo "$target" | tr '[:lower:]-' '[:upper:]_')
    export "CARGO_TARGET_${name}_LINKER=$linker"
    export "CC_$(echo "$target" | tr - _)=$linker"
    cargo build --locked --profile dist --no-default-features --bin allclear --target "$target"
    cp "target/$target/dist/allclear" "$2"
    ;;
  target) echo "$target $linker" ;;
  *) echo 'compile: prepare, build FILE or target' >&2; exit 2 ;;
esac
