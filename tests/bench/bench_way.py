"""How much code does one GPU pass, from the frame that brings it to its line of the table?

Counted, not timed: the functions that run, and their files, are what a reader must follow.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import bench_nvidia
from measure import Figure
from place import Place

TRACE = Path(__file__).with_name("way_trace.py")
GPU = "NVIDIA H100 80GB HBM3"

SLOW = "on * sleep 30"
"""A rule of the fake's: what is done while the library is asked is done before it answers, though
the trace makes it slow."""

FUNCTIONS, FILES = 368, 54
"""Half of 737 functions and 108 files, as they were once counted of commit cc1b7691 by a script
that is lost. This one finds 588 functions in 115 files there."""

Function = tuple[str, str]
"""File and qualified name."""


def run(place: Place) -> Iterator[Figure]:
    """Count what the table of a node with one GPU takes: since its frame, and in all."""
    compiler = bench_nvidia.possible(place)
    if compiler is None:
        return
    node = bench_nvidia.complete_node(place, compiler, 1, "way", SLOW)
    table, child = _trace(place, node)
    way = table["way"]
    yield Figure("functions, frame to table", len(way), "", goal=FUNCTIONS)
    yield Figure("files, frame to table", len({file for file, _ in way}), "", goal=FILES)
    ran = len(way | table["start"])
    yield Figure("functions, the whole command", ran, "", note=f"{len(child)} in its child")


def _trace(place: Place, node: Mapping[str, str]) -> tuple[dict[str, set[Function]], set[Function]]:
    """Run `probe` under a trace; return what it ran, by phase, and what its child ran."""
    folder = place.folder / "traces"
    folder.mkdir()
    done = subprocess.run(
        [place.python, str(TRACE), str(folder)],
        env={**place.environ, **node}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    if GPU not in done.stdout:
        raise RuntimeError(f"no {GPU} in {done.stdout}{done.stderr}")
    traced = [_traced(file.read_text()) for file in folder.glob("*.txt")]
    (table,) = [one for one in traced if "way" in one]
    return table, set().union(*(one["start"] for one in traced if one is not table))


def _traced(text: str) -> dict[str, set[Function]]:
    phases: dict[str, set[Function]] = {}
    for line in text.splitlines():
        phase, file, name = line.split("\t")
        phases.setdefault(phase, set()).add((file, name))
    return phases
