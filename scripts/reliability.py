#!/usr/bin/env python3
"""Makes docs/reliability.md of docs/internals/evidence.json, after it has renewed what fits into half an hour.

An entry of `figures` is a question, written by hand: a command, the part of the tree that it is `about`, how many minutes it may
take (`at_most`), which variables it `needs`, and how its figure is read. `last` is the answer, written here: the figure, what was
run, the commit that changed that part last, and the day. An answer is stale once the part or the command is another one. A run
that fails, takes too long or does not say all that is read leaves the answer of before.

  --list       runs and writes nothing; says what is stale, and what would be run
  --only NAME  runs that one, however long it takes
  --page       runs nothing; writes the page
  --check      runs and writes nothing; exit 1 if the page is not what the file makes

Exit 1: a run gave no figure. Exit 2: it was asked for what there is not.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
DATA = TOP / "docs" / "internals" / "evidence.json"
PAGE = TOP / "docs" / "reliability.md"
# What the runs said in full, one file each.
LOGS = TOP / "target" / "reliability"
# Whoever types `make reliability` waits for it.
MINUTES_MAX = 30

HEAD = """# What reliability rests on

Figures of runs, and how to repeat each. Nothing here says that allclear has no faults: a search says something up to its bounds,
a test about what it plays, a seed about one story. What nobody has tried is [at the end](#not-tried).

This page is made: `make reliability` runs again what fits into {minutes} minutes on two cores, beginning with what is stale, and
writes it from [evidence.json](internals/evidence.json). A figure is **stale** when the part of the tree that it is about has changed
since its commit, or its command has. This page cannot know that of the tree that you have; `scripts/reliability.py --list` says it,
and runs nothing. `make reliability ONLY=NAME` repeats one. A run that fails gives no figure.

*Commit* is the one that changed that part last before the run.

| name | what | figure | commit, day | repeated by, minutes |
|---|---|---|---|---|
"""

ABOUT = """
## What each is about

| name | the part of the tree |
|---|---|
"""

UNTRIED = """
## Not tried

"""


class NoFigure(Exception):
    """Why a run gave none."""


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=TOP, check=True, capture_output=True, text=True).stdout.strip()


def stale(entry):
    """Why the answer is none to the question as it is now; "" if it is one."""
    last = entry["last"]
    if last is None:
        return "not run since it is written"
    if last["run"] != entry["run"]:
        return f"was made by {last['run']}"
    try:
        changed = git("diff", "--name-only", last["commit"], "--", *entry["about"]).splitlines()
    except subprocess.CalledProcessError:
        return f"cannot be told: {last['commit']} is not in this clone"
    return f"{len(changed)} files changed since {last['commit']}, such as {changed[0]}" if changed else ""


def read(entry, said):
    """The figure in what a run said; it must say all that is read."""
    found = {}
    for name, (how, pattern) in entry["reads"].items():
        matches = re.findall(pattern, said, re.MULTILINE)
        if not matches:
            raise NoFigure(f"it did not say {name}")
        if how == "count":
            found[name] = len(matches)
        else:
            numbers = [int(match.replace(",", "")) for match in matches]
            found[name] = sum(numbers) if how == "sum" else numbers[-1]
    return entry["figure"].format(**{name: f"{number:,}" for name, number in found.items()})


def committed(entry):
    """The commit that changed the part last."""
    if git("status", "--porcelain", "--", *entry["about"]):
        raise NoFigure("what it is about has changes that are in no commit")
    return git("log", "-1", "--format=%H", "--", *entry["about"])[:12]


def perform(entry):
    """Runs it; what it said."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{entry['name']}.log"
    with log.open("w") as out:
        command = ["bash", "-c", entry["run"]]
        run = subprocess.Popen(command, cwd=TOP, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = run.wait(timeout=entry["at_most"] * 60)
        except BaseException as error:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise NoFigure(f"no end within {entry['at_most']} minutes; see {log}") from error
            raise
    if code:
        raise NoFigure(f"it ended with exit code {code}; see {log}")
    return log.read_text(errors="replace")


def renew(entry):
    commit, began = committed(entry), time.monotonic()
    figure = read(entry, perform(entry))
    if committed(entry) != commit:
        raise NoFigure("what it is about has changed meanwhile")
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    minutes = round((time.monotonic() - began) / 60, 1)
    entry["last"] = {"figure": figure, "run": entry["run"], "commit": commit, "day": day, "minutes": minutes}


def minutes_of(entry):
    """So long it takes, as far as is known."""
    last = entry["last"]
    return last["minutes"] if last and last["minutes"] and last["run"] == entry["run"] else entry["at_most"]


def planned(figures):
    """What fits: first what is stale, then what is oldest."""
    left, chosen = MINUTES_MAX, []
    for entry in sorted(figures, key=lambda entry: (not stale(entry), (entry["last"] or {"day": ""})["day"])):
        if minutes_of(entry) <= left and all(name in os.environ for name in entry.get("needs", [])):
            left -= minutes_of(entry)
            chosen.append(entry)
    return chosen


def page(data):
    rows, parts = [], []
    for entry in data["figures"]:
        last = entry["last"]
        answer = f"{last['figure']} | `{last['commit']}`, {last['day']}" if last else "not run since it is written | "
        if last and last["run"] != entry["run"]:
            answer += f", by `{last['run']}`"
        took = f"{last['minutes']:g}" if last and last["minutes"] else f"{entry['at_most']} at most"
        rows.append(f"| {entry['name']} | {entry['what']} | {answer} | `{entry['run']}`, {took} |\n")
        parts.append(f"| {entry['name']} | {', '.join(f'`{path}`' for path in entry['about'])} |\n")
    untried = [f"- {one}\n" for one in data["untried"]]
    return "".join([HEAD.format(minutes=MINUTES_MAX), *rows, ABOUT, *parts, UNTRIED, *untried])


def keep(entry):
    """Writes this answer, and leaves all else as it is by now: another run may have written meanwhile."""
    data = json.loads(DATA.read_text())
    for other in data["figures"]:
        if other["name"] == entry["name"]:
            other["last"] = entry["last"]
    DATA.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    PAGE.write_text(page(data))


def tell_stale(figures):
    """How many are stale."""
    told = [(entry["name"], why) for entry in figures if (why := stale(entry))]
    for name, why in told:
        print(f"reliability: {name}: stale: {why}")
    print(f"reliability: {len(figures) - len(told)} of {len(figures)} figures are about this tree")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    chosen = parser.add_mutually_exclusive_group()
    for flag in ("--list", "--page", "--check"):
        chosen.add_argument(flag, action="store_true")
    chosen.add_argument("--only", metavar="NAME")
    wanted = parser.parse_args()
    data = json.loads(DATA.read_text())
    figures = data["figures"]
    if wanted.check:
        sys.exit(PAGE.read_text() != page(data))
    if wanted.page:
        return PAGE.write_text(page(data))
    runs = [entry for entry in figures if entry["name"] == wanted.only] if wanted.only else planned(figures)
    if wanted.only and not runs:
        print(f"reliability: there is no {wanted.only}: {', '.join(entry['name'] for entry in figures)}", file=sys.stderr)
        sys.exit(2)
    if wanted.list:
        tell_stale(figures)
        return print(f"reliability: would run {', '.join(entry['name'] for entry in runs)}")
    failed = False
    for entry in runs:
        print(f"reliability: {entry['name']}: {entry['run']}, some {minutes_of(entry):g} minutes", flush=True)
        try:
            renew(entry)
            print(f"reliability: {entry['name']}: {entry['last']['figure']}", flush=True)
            keep(entry)
        except NoFigure as why:
            failed = True
            print(f"reliability: {entry['name']}: no figure: {why}", file=sys.stderr, flush=True)
    tell_stale(figures)
    sys.exit(failed)


main()
