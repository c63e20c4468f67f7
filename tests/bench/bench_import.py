"""What does `import probe_core` cost a program that may never probe?"""

from __future__ import annotations

from collections.abc import Iterator

from measure import Figure, bare, interleaved
from place import Place


def run(place: Place) -> Iterator[Figure]:
    """Compare with an interpreter that does nothing."""
    commands = {
        "bare": [place.python, *bare()],
        "core": [place.python, "-c", "import probe_core"],
        "api": [place.python, "-c", "import probe_core.api"],
    }
    taken = interleaved(commands, place.rounds(61), place.environ)
    note = f"{taken['core'] * 1000:.1f} ms against {taken['bare'] * 1000:.1f} ms"
    yield Figure("import probe_core / bare Python", taken["core"] / taken["bare"], "x", 1.1, note)
    yield Figure("import probe_core.api / bare Python", taken["api"] / taken["bare"], "x")
