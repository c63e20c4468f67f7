"""What do ten commands of plugins cost `probe --help`, beyond the walk that finds them?

Both sides of a pair list as many distributions: in one each has a command with a manifest, in the
other an entry point of another group. A fresh process each, because a command line is one; measured
inside of it, because the start of an interpreter varies by more than what is looked for.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

from measure import Figure
from place import Place

COUNT = 10
GROUP = "probe_core.commands.v1"

# `as user` is how nearly everybody calls it. Root also pays for looking who owns each file.
HELP = """
import os, sys
from time import perf_counter
if sys.argv[1] == "as user" and hasattr(os, "geteuid"):
    os.geteuid = lambda: 1000
import argparse
from probe_core.cli.parser import Parser
from probe_core.cli import COMMANDS, help, plugin_commands
start = perf_counter()
lines = help.command_lines()
spent = perf_counter() - start
print(spent, sum("acme" in line for line in lines))
"""


def run(place: Place) -> Iterator[Figure]:
    """Compare help with ten commands of plugins and without, as a user and as root."""
    bare = _site(place.folder / "commands" / "none", "somebody.elses")
    full = _site(place.folder / "commands" / "ten", GROUP)
    for who, target in (("as user", 0.5), ("as root", None)):
        taken = _interleaved(place, who, {"bare": bare, "full": full})
        more = (median(taken["full"]) - median(taken["bare"])) * 1000
        note = f"the walk and the built-in ones take {median(taken['bare']) * 1000:.2f} ms"
        yield Figure(f"{COUNT} commands in the help, {who}", more, "ms more", target, note)


def _site(folder: Path, group: str) -> Path:
    """Write ten distributions of one module each, with manifests, as pip installs them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(COUNT):
        name = f"acme{number}"
        (folder / f"bench_{name}.py").write_text("raise SystemExit('imported')\n")
        fields = {"group": "Use", "summary": f"Invented command {number}"}
        manifest = json.dumps({"schema": 1, "commands": {name: fields}})
        (folder / f"bench_{name}.command.json").write_text(manifest)
        info = folder / f"bench_{name}-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: bench-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = bench_{name}\n")
    return folder


def _interleaved(place: Place, who: str, sites: Mapping[str, Path]) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in sites}
    for number in range(place.rounds(40, 15) + 1):
        for name in list(sites) if number % 2 else reversed(list(sites)):
            seconds, listed = _once(place, who, sites[name])
            if listed != (COUNT if name == "full" else 0):
                raise RuntimeError(f"{name}: {listed} commands were listed")
            if number:
                taken[name].append(seconds)
    return taken


def _once(place: Place, who: str, site: Path) -> tuple[float, int]:
    done = subprocess.run(
        [place.python, "-c", HELP, who],
        env=place.with_path(site), capture_output=True, text=True, check=True,
    )  # fmt: skip
    seconds, listed = done.stdout.split()
    return float(seconds), int(listed)
