"""What does a page cost beside `probe --json`, and how large is it?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from measure import Figure, bare, costs
from place import ROOT, Place

TARGET = 1.0
"""Of twice `probe --json` and the import of Jinja2: a page is made by hand, or once a day."""

MOST = 600
"""Kilobytes, of any node: a mail takes them."""

MACHINES = {
    "no GPU": "dual-socket-epyc-9124--cpu",
    "8 x H100": "dgx-h100--8x-nvidia-h100-80gb-hbm3",
}


def run(place: Place) -> Iterator[Figure]:
    """Compare a page with the report that it shows, interleaved."""
    for name, machine in MACHINES.items():
        path = ROOT / "tests" / "machines" / f"{machine}.json"
        page = place.folder / f"{machine}.html"
        yield _cost(place, name, str(path), page)
        size = page.stat().st_size / 1000
        yield Figure(f"a page, {name}", size, "kB", MOST)


def _cost(place: Place, name: str, machine: str, page: Path) -> Figure:
    base = [place.python, "-m", "probe_core"]
    commands = {
        "probe": [*base, "--json", "--machine", machine],
        "report": [*base, "report", "-o", str(page), "--machine", machine],
        "jinja": [place.python, "-c", "import jinja2"],
        "python": [place.python, *bare()],
    }
    taken = {
        key: cost.wall * 1000
        for key, cost in costs(commands, place.rounds(20), place.environ).items()
    }
    limit = 2 * taken["probe"] + taken["jinja"] - taken["python"]
    note = f"{taken['report']:.0f} ms; probe --json {taken['probe']:.0f} ms"
    ratio = taken["report"] / limit
    return Figure(f"probe report, {name}", ratio, "of 2 x --json + Jinja2", TARGET, note)
