"""Write how far predictions are off, by class, into the package's `ranges.toml`.

Of one request from `bench_predictions`, of many at once from `bench_serving`.

`python tests/bench/ranges.py` prints it, `--write` stores it. All publications of an owner are left
out at once: the figures are fitted on the others' and predict those rows. Of the errors of a class
`SHARE` are within its factor, by split conformal prediction with publications as the unit:
each counts as one, whatever its rows, and one more, the next, as further off than all of them.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import bench_predictions
import bench_serving
from bench_predictions import COMPUTES

RANGES = "plugins/cluster/src/probe_cluster/planning/ranges.toml"
HEAD = """\
# How far predictions of a class were off: in nine cases of ten at most by the factor, either way.
# Written by tests/bench/ranges.py, which says how, from the rows of tests/bench/published.toml and,
# of many requests, of tests/bench/serving.toml. A class of fewer than twelve publications has the
# factor of the wider class that its last field names, or that of its own cases, or of all of its
# engine and hardware, where it is more.
# A class: engine, hardware, mode, cases, publications, factor, wider class.
classes = [
"""
# For nine of ten of what comes later: of the fifth and sixth collection the ranges held some four
# points less than of owners that were left out, whose engines and models are of the same age.
SHARE = 0.92
MODES = {
    "one": "on one device",
    "pipeline": "in pipelines",
    "tensor": "with split layers",
    "serving": "of many requests",
    "": "of one request",
}


class Key(NamedTuple):
    """A class: what an engine computes with, the hardware, and how nodes or cards work together."""

    engine: str
    hardware: str
    mode: str

    @property
    def wider(self) -> list[Key]:
        """The classes that it is part of, the narrowest first; "" stands for all."""
        found = [Key(self.engine, "", self.mode), Key("", "", self.mode)]
        return found if self.mode == "serving" else [*found, Key("", "", "")]

    def shares_device(self, other: Key) -> bool:
        """Return whether a class is of the same engine and hardware, of one request or of many.

        Those of one request say how far off the devices are of which pipelines are made.
        """
        many = [key.mode == "serving" for key in (self, other)]
        return self[:2] == other[:2] and many[0] == many[1]

    def holds(self, other: Key) -> bool:
        """Return whether a class is part of this one."""
        if not self.mode and other.mode == "serving":
            return False
        return all(own in ("", part) for own, part in zip(self, other, strict=True))


class Error(NamedTuple):
    """How far off a prediction was, by figures without its owner's rows."""

    key: Key
    size: float
    """|ln(predicted / measured)|."""
    source: str


def of_one() -> list[Error]:
    """Return the errors of one request."""
    found = []
    for error, row in bench_predictions.without_owner(bench_predictions.rows()):
        mode = "tensor" if row.split else "pipeline" if row.nodes > 1 else "one"
        key = Key(COMPUTES.get(row.engine, row.engine), row.kind, mode)
        found.append(Error(key, abs(error), row.source))
    return found


def of_many() -> list[Error]:
    """Return the errors of many requests at once, however devices share a model."""
    return [
        Error(key_of_many(row), abs(error), row.source)
        for error, row in bench_serving.without_owner(bench_serving.rows())
    ]


def key_of_many(row: bench_serving.Row) -> Key:
    """Return the class of a row of many requests."""
    first = row.members[0]
    assert first.efficiency is not None, row.label
    return Key(first.efficiency.computes, first.class_ or "", "serving")


def bound(errors: Sequence[Error], more: int = 1) -> float | None:
    """Return the size that `SHARE` of errors do not exceed, of so many publications more, too.

    None of so few publications that no size can be said.
    """
    rows = Counter(error.source for error in errors)
    inside, wanted = 0.0, SHARE * (len(rows) + more)
    for error in sorted(errors, key=lambda error: error.size):
        inside += 1 / rows[error.source]
        # A publication's rows sum to one but for rounding.
        if inside >= wanted - 1e-9:
            return error.size
    return None


def line(key: Key, errors: Sequence[Error]) -> str:
    """Return the class of these errors."""
    own = [error for error in errors if error.key == key]
    size, wider = bound(own), ""
    for parent in key.wider if size is None else []:
        parts = [error for error in errors if parent.holds(error.key)]
        size = bound(parts)
        if size is not None:
            wider = (
                f"{len(parts)} cases of {parent.engine or 'all engines'}"
                f" {MODES[parent.mode]}, of {_publications(parts)} publications"
            )
            break
    alike = [error for error in errors if key.shares_device(error.key)]
    known = max(filter(None, (bound(own, 0), bound(alike, 0))))
    assert size is not None, key
    if known > size:
        size, wider = known, ""
    factor = math.ceil(100 * math.exp(size)) / 100
    texts = ", ".join(f'"{part}"' for part in key)
    return f'  [{texts}, {len(own)}, {_publications(own)}, {factor:.2f}, "{wider}"],\n'


def _publications(errors: Sequence[Error]) -> int:
    return len({error.source for error in errors})


def document(errors: Sequence[Error]) -> str:
    """Return the file."""
    keys = sorted({error.key for error in errors}, key=lambda key: (key.mode == "serving", key))
    return f"{HEAD}{''.join(line(key, errors) for key in keys)}]\n"


def main() -> int:
    """Print the file, or store it."""
    made = document([*of_one(), *of_many()])
    if "--write" in sys.argv[1:]:
        (Path(__file__).parents[2] / RANGES).write_text(made)
    else:
        print(made)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
