#!/usr/bin/env python3
"""Breaks the domain in each of the ways that tests/mutants.txt lists, one at a time, and names those that no test catches.

Works on a copy of the tracked files below target/mutants, with a target directory of its own. MUTANTS chooses some: words that the
title has, or numbers (`MUTANTS=3`, `MUTANTS=3..8`). Each is tried by the unit tests, then the properties, then the models, and left
at the first that fails. Exit 1: one survived, or does not build. Exit 2: the list does not fit the source, or it fails as it is.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
LIST = TOP / "tests" / "mutants.txt"
WORK = TOP / "target" / "mutants"
TREE = WORK / "tree"
# The weakest tier that can fail comes first: a unit test says at once what a model searches for.
DOMAIN = ["kernel", "kinds", "notices", "proof", "purge", "objects"]
TIERS = [
    [*(f"--package=allclear-{name}" for name in DOMAIN), "--lib"],
    ["--package=allclear-model", "--test", "property"],
    ["--package=allclear-model", "--test", "model"],
]
# A mutant may search or wait for ever; the slowest tier takes a quarter of this on a busy machine.
TIER_SECONDS_MAX = 1800


def fail(why):
    print(f"mutants: {why}", file=sys.stderr)
    sys.exit(2)


def parse(text):
    """Each mutant as (title, path, text before, text after)."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("== "):
            path, _, title = line[3:].partition(": ")
            found.append((title, path, [], []))
        elif line.startswith(("- ", "+ ")) or line in ("-", "+"):
            if not found:
                fail(f"line {number} belongs to no mutant")
            found[-1][2 if line[0] == "-" else 3].append(line[2:])
        elif line and not line.startswith("#"):
            fail(f"line {number} is neither a title, a line before (-), a line after (+) nor a comment (#)")
    return [(title, path, "\n".join(before), "\n".join(after)) for title, path, before, after in found]


def chosen(mutants, wanted):
    numbered = list(enumerate(mutants, 1))
    span = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", wanted)
    if span:
        first, last = int(span[1]), int(span[2] or span[1])
        return [one for one in numbered if first <= one[0] <= last]
    return [one for one in numbered if all(word in one[1][0] + one[1][1] for word in wanted.split())]


def apply(title, path, before, after):
    text = (TOP / path).read_text()
    if text.count(before) != 1 or not before:
        fail(f"{path}: {title}: its text is there {text.count(before)} times, not once; mend tests/mutants.txt")
    return text.replace(before, after)


def copy():
    """The tracked files as they are now; files of before keep their times, so that little is built again."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True, text=True)
    files = {name for name in listed.stdout.split("\0") if name and (TOP / name).is_file()}
    for name in files:
        source, target = TOP / name, TREE / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    for path in [path for path in TREE.rglob("*") if path.is_file() and str(path.relative_to(TREE)) not in files]:
        path.unlink()


def cargo(*arguments):
    """Whether it succeeded, and what it said; a run without an end counts as a failure."""
    environment = os.environ | {"CARGO_TARGET_DIR": str(WORK / "target")}
    command = [os.environ.get("CARGO", "cargo"), "test", "--locked", "--quiet", *arguments]
    run = subprocess.Popen(command, cwd=TREE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           errors="replace", start_new_session=True)
    try:
        said, _ = run.communicate(timeout=TIER_SECONDS_MAX)
        return run.returncode == 0, said
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        return False, f"no end within {TIER_SECONDS_MAX} s"


def outcome():
    """What becomes of the tree as it is: how it was caught, "" if it was not, None if it does not build."""
    for tier in TIERS:
        built, said = cargo(*tier, "--no-run")
        if not built:
            print(said[-2000:], file=sys.stderr)
            return None
        passed, said = cargo(*tier)
        if not passed:
            test = re.search(r"^    (\S+)$", said[said.rfind("failures:"):], re.MULTILINE)
            return test[1] if test else said.strip().splitlines()[-1]
    return ""


def main():
    mutants = parse(LIST.read_text())
    for mutant in mutants:
        apply(*mutant)
    wanted = chosen(mutants, os.environ.get("MUTANTS", ""))
    if not wanted:
        fail("MUTANTS chooses none")
    begun = time.monotonic()
    copy()
    print(f"mutants: {len(wanted)} of {len(mutants)}; first the source as it is", flush=True)
    caught = outcome()
    if caught != "":
        fail(f"the source fails as it is: {caught or 'it does not build'}")
    lost = []
    for number, (title, path, before, after) in wanted:
        (TREE / path).write_text(apply(title, path, before, after))
        caught = outcome()
        shutil.copyfile(TOP / path, TREE / path)
        verdict = {None: "DOES NOT BUILD", "": "SURVIVED"}.get(caught) or f"killed by {caught}"
        print(f"{number:3} {path}: {title}: {verdict}", flush=True)
        if not caught:
            lost.append(number)
    minutes = (time.monotonic() - begun) / 60
    print(f"mutants: {len(wanted) - len(lost)} of {len(wanted)} killed in {minutes:.1f} minutes")
    if lost:
        print(f"mutants: not killed: {', '.join(map(str, lost))}", file=sys.stderr)
        sys.exit(1)


main()
