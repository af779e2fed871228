#!/usr/bin/env bash
# Writes what a released binary is made of to target/sbom, one file for each architecture, in CycloneDX 1.5: the crates that are linked with the
# features of the release, each with its version, licence and checksum. cargo and Python say it; nothing has to be installed. Not what
# the image's base holds: buildx adds an SBOM of that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python3 -c 'import tomllib' 2>/dev/null || { echo 'sbom: Python 3.11 or newer is missing, nothing was written' >&2; exit 1; }

mkdir -p target/sbom
for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu; do
  # What deploy/image/compile.sh builds.
  cargo tree --locked --package allclear --no-default-features --target "$target" --edges normal --prefix depth --no-dedupe \
    --format '{p}' > target/sbom/tree
  cargo metadata --locked --format-version 1 --filter-platform "$target" > target/sbom/metadata
  python3 - "$target" <<'PYTHON'
import json, re, sys, tomllib

target = sys.argv[1]
names = set()
macro = None
for line in open("target/sbom/tree"):
    depth, name, version, kind = re.match(r"(\d+)(\S+) v(\S+)(?: \((proc-macro)\))?", line).groups()
    # A macro runs in the compiler, and so does what it needs: nothing of that is linked.
    if macro is not None and int(depth) > macro:
        continue
    macro = int(depth) if kind else None
    if not kind:
        names.add((name, version))
packages = {(one["name"], one["version"]): one for one in json.load(open("target/sbom/metadata"))["packages"]}
locked = tomllib.load(open("Cargo.lock", "rb"))["package"]
checksums = {(one["name"], one["version"]): one.get("checksum") for one in locked}

def component(name, version):
    package = packages[name, version]
    own = package["source"] is None
    url = f"pkg:cargo/{name}@{version}"
    told = {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}
    # Older manifests separate licences by a slash, which is no expression.
    licence = (package["license"] or "").replace("/", " OR ") or None
    if licence:
        told["licenses"] = [{"expression": licence}]
    if not own:
        told["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
    if package["repository"] and not own:
        told["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return told

version = next(one["version"] for one in locked if one["name"] == "allclear")
root = component("allclear", version) | {"type": "application"}
parts = [component(*one) for one in sorted(names) if one != ("allclear", version)]
bom = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "version": 1,
    "metadata": {"component": root, "properties": [{"name": "cargo:target", "value": target}]},
    "components": parts,
}
with open(f"target/sbom/allclear-{target}.cdx.json", "w") as file:
    json.dump(bom, file, indent=1)
    file.write("\n")
print(f"target/sbom/allclear-{target}.cdx.json: {len(parts)} crates")
PYTHON
done
rm target/sbom/tree target/sbom/metadata
