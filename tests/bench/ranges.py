"""Write how far predictions are off, by class, into the package's `ranges.toml`.

Of one request from `bench_predictions`, of many at once from `bench_serving`.

`python tests/bench/ranges.py` prints it, `--write` stores it. Each publication is left out once:
the figures are fitted on the others (`bench_predictions.refitted`) and predict its rows.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import bench_serving
from bench_predictions import COMPUTES, Row, errors, quantile, refitted, rows

RANGES = "plugins/cluster/src/probe_cluster/planning/ranges.toml"
HEAD = """\
# How far predictions of a class were off: in nine cases of ten at most by `factor`, either way.
# Written by tests/bench/ranges.py, from the rows of tests/bench/published.toml and, of many
# requests, of tests/bench/serving.toml: each publication is left out once, the figures of
# efficiency.toml are fitted on the others, and predict its rows. Of few cases the largest error
# counts, and no less than what is usual.
"""

# Nine cases of ten have a meaning from ten on; of fewer the largest error is taken.
FEW = 10


class Key(NamedTuple):
    """A class: what an engine computes with, the hardware, and how nodes or cards work together."""

    engine: str
    hardware: str
    mode: str


def key_of(row: Row) -> Key:
    """Return the class of a row."""
    mode = "tensor" if row.split else "pipeline" if row.nodes > 1 else "one"
    return Key(COMPUTES.get(row.engine, row.engine), row.kind, mode)


def held_out(published: list[Row]) -> list[tuple[float, Row]]:
    """Return ln(predicted / measured) of each row, by figures without its publication."""
    from probe_cluster.planning.efficiency import table

    found: list[tuple[float, Row]] = []
    for source in sorted({row.source for row in published}):
        others = [row for row in published if row.source != source]
        own = [row for row in published if row.source == source]
        found += errors(own, refitted(others, table()))
    return found


class Error(NamedTuple):
    """How far off a prediction was, by figures without its publication."""

    key: Key
    size: float
    """|ln(predicted / measured)|."""
    source: str


def of_one() -> list[Error]:
    """Return the errors of one request."""
    return [Error(key_of(row), abs(error), row.source) for error, row in held_out(rows())]


def of_many() -> list[Error]:
    """Return the errors of many requests at once, however devices share a model."""
    found = []
    for error, row in bench_serving.held_out(bench_serving.rows()):
        first = row.members[0]
        assert first.efficiency is not None, row.label
        key = Key(first.efficiency.computes, first.class_ or "", "serving")
        found.append(Error(key, abs(error), row.source))
    return found


def text(found: list[Error]) -> str:
    """Return the classes of these errors."""
    usual = quantile([error.size for error in found], 0.75)
    classes: dict[Key, list[Error]] = defaultdict(list)
    for error in found:
        classes[error.key].append(error)
    lines = []
    for key, own in sorted(classes.items()):
        sizes = [error.size for error in own]
        worst = quantile(sizes, 0.9) if len(own) >= FEW else max(*sizes, usual)
        lines += [
            "[[class]]",
            f'engine = "{key.engine}"',
            f'hardware = "{key.hardware}"',
            f'mode = "{key.mode}"',
            f"cases = {len(own)}",
            f"publications = {len({error.source for error in own})}",
            f"factor = {math.ceil(100 * math.exp(worst)) / 100:.2f}",
            "",
        ]
    return "\n".join(lines)


def document(one: list[Error], many: list[Error]) -> str:
    """Return the file."""
    return "\n".join((HEAD, text(one), text(many)))


def main() -> int:
    """Print the file, or store it."""
    made = document(of_one(), of_many())
    if "--write" in sys.argv[1:]:
        (Path(__file__).parents[2] / RANGES).write_text(made)
    else:
        print(made)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
