#!/bin/sh
# Gets Debian's ssh, and the libraries that it links, for TARGETARCH. Nothing of it is run, so it may be for the other architecture.
#
#   ssh.sh FOLDER    puts them below FOLDER, where the image has them
set -eu

into=$1
case "${TARGETARCH:-$(dpkg --print-architecture)}" in
  amd64) architecture=amd64 triplet=x86_64-linux-gnu ;;
  arm64) architecture=arm64 triplet=aarch64-linux-gnu ;;
  *) echo "ssh: no image is built for $TARGETARCH; amd64 and arm64 are" >&2; exit 2 ;;
esac
# What `ldd /usr/bin/ssh` names on Debian 12, but for glibc, which the base has.
packages='openssh-client libcom-err2 libgssapi-krb5-2 libk5crypto3 libkeyutils1 libkrb5-3 libkrb5support0 libpcre2-8-0 libselinux1 libssl3 zlib1g'

work=$(mktemp -d)
cd "$work"
dpkg --add-architecture "$architecture"
apt-get update -qq
for package in $packages; do
  apt-get download -qq "$package:$architecture"
done
for file in ./*.deb; do
  dpkg-deb --extract "$file" "$work/all"
done
mkdir -p "$into/usr/bin" "$into/usr/lib/$triplet"
cp "$work/all/usr/bin/ssh" "$into/usr/bin/ssh"
# glibc looks in both folders of the triplet; of /lib the base may have a link.
for folder in "$work/all/lib/$triplet" "$work/all/usr/lib/$triplet"; do
  if [ -d "$folder" ]; then
    find "$folder" -maxdepth 1 -name '*.so.*' -exec cp --no-dereference '{}' "$into/usr/lib/$triplet/" ';'
  fi
done
rm -rf "$work"
