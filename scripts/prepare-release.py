#!/usr/bin/env python3
"""Writes into the tree what a release says of itself: its version, its date and where it is published. Commit that, and tag it v1.2.3.

    scripts/prepare-release.py 0.1.0 example/allclear

The image is ghcr.io/OWNER/NAME, to which .github/workflows/release.yml pushes it. That workflow refuses a tag whose files do not agree.
"""

import datetime
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent


def edits(version, repository, day):
    """For each file the lines to change, and what takes their place. Each pattern fits once, or, with a `?`, as often as it does."""
    home = f"https://github.com/{repository}"
    image = f"ghcr.io/{repository.lower()}"
    return {
        "CHANGELOG.md": [
            (r"^## \[Unreleased\]$", f"## [Unreleased]\n\n## [{version}] - {day}"),
            (r" There is none yet: what is unreleased will be\n0\.1\.0\.", "", "?"),
        ],
        "Cargo.toml": [
            (r'^version = ".*"$', f'version = "{version}"'),
            (r'^license = "Apache-2\.0"$(\nrepository = .*$)?', f'license = "Apache-2.0"\nrepository = "{home}"'),
            (r"^license\.workspace = true$(\nrepository\.workspace = true$)?", "license.workspace = true\nrepository.workspace = true"),
        ],
        "deploy/Dockerfile": [(r"^ARG VERSION=.*$", f"ARG VERSION={version}")],
        "deploy/base/kustomization.yaml": [
            (r"^    newName: .*$", f"    newName: {image}"),
            (r"^    newTag: .*$", f"    newTag: {version}"),
        ],
        "deploy/chart/allclear/Chart.yaml": [
            (r"^version: .*$", f"version: {version}"),
            (r"^appVersion: .*$", f"appVersion: {version}"),
            (r"^type: application$(\nhome: .*\nsources: .*$)?", f"type: application\nhome: {home}\nsources: [{home}]"),
        ],
        "deploy/chart/allclear/values.yaml": [
            (r"^  # Where the image is\..*\n  repository: .*$", f"  # Where the image is.\n  repository: {image}"),
        ],
        "deploy/chart/allclear/README.md": [
            (r"^\| `image\.repository` \|.*$", f'| `image.repository` | `"{image}"` | Where the image is. |'),
            (r"image\.repository=\S+", f"image.repository={image}", "?"),
        ],
    }


def edited(name, text, changes):
    for pattern, words, *optional in changes:
        text, count = re.subn(pattern, lambda _: words, text, flags=re.MULTILINE)
        if count != 1 and not optional:
            sys.exit(f"prepare-release: {name} has {count} lines like {pattern}, and one was expected; nothing was written")
    return text


def main():
    if len(sys.argv) != 3 or not re.fullmatch(r"\d+\.\d+\.\d+", sys.argv[1]) or not re.fullmatch(r"[\w-]+/[\w.-]+", sys.argv[2]):
        sys.exit("usage: scripts/prepare-release.py VERSION OWNER/NAME, as in: scripts/prepare-release.py 0.1.0 example/allclear")
    version, repository = sys.argv[1:]
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    changes = edits(version, repository, day).items()
    # All are made before the first is written, so a tree that does not fit stays as it is.
    made = {name: edited(name, (TOP / name).read_text(), lines) for name, lines in changes}
    for name, text in made.items():
        (TOP / name).write_text(text)
    print(f"prepare-release: {version} of {day} at {repository}, in {len(made)} files.")
    print("Next: cargo update --workspace --offline, README and docs/upgrade.md (they say that there is no release), make test, commit, tag.")


main()
