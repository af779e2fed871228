#!/usr/bin/env python3
"""Writes to target/sbom what a released binary is made of, from what cargo says; nothing has to be installed.

For each architecture an SBOM in CycloneDX 1.5: the crates that are linked with the features of the release, each with its version,
licence and checksum. And THIRD-PARTY-LICENSES, which the image and the archives hold: the texts of those licences, each once, with the
crates it is from. Not what the image's base holds: buildx adds an SBOM of that.
"""

import json
import pathlib
import re
import subprocess
import sys

try:
    import tomllib
except ImportError:
    sys.exit("sbom: Python 3.11 or newer is missing, nothing was written")

TOP = pathlib.Path(__file__).resolve().parent.parent
# What deploy/image/compile.sh builds.
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
# How crates name the files that their licence wants to be passed on.
TEXTS = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense|authors)([-_.].*)?", re.IGNORECASE)
CODE = {".rs", ".py", ".toml", ".go", ".c", ".h", ".html"}


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=TOP, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(target):
    """Name and version of each crate that is linked, our own among them."""
    tree = cargo("tree", "--locked", "--package", "allclear", "--no-default-features", "--target", target, "--edges", "normal",
                 "--prefix", "depth", "--no-dedupe", "--format", "{p}")
    names = set()
    macro = None
    for line in tree.splitlines():
        depth, name, version, kind = re.match(r"(\d+)(\S+) v(\S+)(?: \((proc-macro)\))?", line).groups()
        # A macro runs in the compiler, and so does what it needs: nothing of that is linked.
        if macro is not None and int(depth) > macro:
            continue
        macro = int(depth) if kind else None
        if not kind:
            names.add((name, version))
    return names


def licence(package):
    """The SPDX expression. Older manifests separate licences by a slash, which is no expression."""
    return (package["license"] or "").replace("/", " OR ") or None


def component(package, checksum):
    name, version = package["name"], package["version"]
    url = f"pkg:cargo/{name}@{version}"
    told = {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}
    if licence(package):
        told["licenses"] = [{"expression": licence(package)}]
    if package["source"] is not None:
        told["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if package["repository"]:
            told["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return told


def texts(package):
    """What the crate says of its licence, in the files that come with it; in a C library inside it too."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [one for one in folder.rglob("*") if TEXTS.fullmatch(one.name) and one.is_file() and one.suffix not in CODE]
    read = [one.read_text(encoding="utf-8", errors="replace") for one in sorted(files)]
    # One text is one, however its lines are broken.
    return {" ".join(text.split()): text.strip("\n") for text in read if text.strip()}


def written(packages):
    """The texts, each once, after the list of all crates."""
    crates = [f"{one['name']} {one['version']}" for one in packages]
    by_text, kept, silent = {}, {}, []
    for crate, package in zip(crates, packages):
        found = texts(package)
        if not found:
            silent.append(crate)
        for key, text in found.items():
            kept.setdefault(key, text)
            by_text.setdefault(key, []).append(crate)
    lines = ["What allclear is linked with, under which licences, and the texts of these.", ""]
    lines += [f"{crate}: {licence(package)}" for crate, package in zip(crates, packages)]
    if silent:
        lines += ["", "Without a text of their own, so the one that their licence names holds: " + ", ".join(silent)]
    for key, names in sorted(by_text.items(), key=lambda one: (-len(one[1]), one[1])):
        lines += ["", "-" * 80, ", ".join(names), "-" * 80, "", kept[key]]
    return "\n".join(lines) + "\n"


def main():
    out = TOP / "target/sbom"
    out.mkdir(parents=True, exist_ok=True)
    locked = tomllib.loads((TOP / "Cargo.lock").read_text())["package"]
    checksums = {(one["name"], one["version"]): one.get("checksum") for one in locked}
    foreign = {}
    for target in TARGETS:
        names = linked(target)
        metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", target))
        packages = {(one["name"], one["version"]): one for one in metadata["packages"]}
        root = next(one for one in names if one[0] == "allclear")
        tell = lambda one: component(packages[one], checksums[one])
        parts = [tell(one) for one in sorted(names - {root})]
        bom = {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {"component": tell(root) | {"type": "application"}, "properties": [{"name": "cargo:target", "value": target}]},
            "components": parts,
        }
        path = out / f"allclear-{target}.cdx.json"
        path.write_text(json.dumps(bom, indent=1) + "\n")
        print(f"{path.relative_to(TOP)}: {len(parts)} crates")
        foreign |= {one: packages[one] for one in names if packages[one]["source"] is not None}
    path = out / "THIRD-PARTY-LICENSES"
    path.write_text(written([foreign[one] for one in sorted(foreign)]))
    print(f"{path.relative_to(TOP)}: {len(foreign)} crates, {path.stat().st_size // 1024} KiB")


main()
