"""How far off are predicted speeds from published ones, as fitted and with each source left out?"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from measure import Figure
from place import Place

if TYPE_CHECKING:
    from probe_cluster import Model

PUBLISHED = Path(__file__).parent / "published.toml"
FRESH = Path(__file__).parent / "published_fresh.toml"
FACTORS = (0.7, 0.85, 0.95, 0.98, 1.0, 1.02, 1.05, 1.2, 1.4)
# A figure that is twice its start costs as much as one row that is off by a factor of 1.6.
ROUNDS, PULL = 10, 1.0
# Set, not fitted: few rows have such links.
PCIE_HOP = 50e-6
# distributed-llama PR 64: by sockets over 1GbE, which the package plans no split for.
SOCKET_REDUCE = 900e-6
COMPUTES = {"llama.cpp": "llama-cpp", "llama.cpp-rpc": "llama-cpp", "exo-ring": "mlx"}


@dataclass(frozen=True)
class Row:
    """One published speed."""

    model: Model
    chip: str
    kind: str
    bandwidth: float
    operations: float | None
    """Of FP32 for each byte that the chip can read, where that bounds it."""
    nodes: int
    split: bool
    engine: str
    link: str
    measured: float
    source: str
    label: str


def rows(path: Path = PUBLISHED) -> list[Row]:
    """Return the published speeds of a file."""
    from probe_cluster.planning.model_spec import parse_model

    with path.open("rb") as file:
        data = tomllib.load(file)
    found = []
    for name, bits, chip, layout, engine, link, measured, source, context in data["rows"][
        "measured"
    ]:
        own = {"model": name, "bits": bits, "context": context, "form": form_of(engine)}
        model = parse_model(own)
        kind, bandwidth, *tera = data["chips"][chip]
        operations = tera[0] * 1e3 / bandwidth if tera else None
        nodes = int(layout.rstrip("PT"))
        label = f"{name} {bits} on {chip} x {layout}"
        fields = (nodes, layout.endswith("T"), engine, link, measured, source, label)
        found.append(Row(model, chip, kind, bandwidth * 1e9, operations, *fields))
    return found


def form_of(engine: str) -> str | None:
    """Return the kind of files that an engine of a row reads."""
    return {"llama-cpp": "gguf", "mlx": "mlx"}.get(COMPUTES.get(engine, engine))


def predicted(row: Row, table: Mapping[str, Any]) -> float:
    """Return tokens per second by the package's formula and the figures of `table`."""
    from probe_cluster.planning.efficiency import kind_factor, pascal_share
    from probe_cluster.planning.links import parse_kind

    engine = COMPUTES.get(row.engine, row.engine)
    share = table["share"].get(engine, {}).get(row.kind) or table["share"][row.kind]
    if row.kind == "gddr-pascal":
        share = pascal_share(table["share"], row.operations)
    tau = table["tau"][engine][row.kind] * 1e-6 * kind_factor(table, engine, row.model.kind)
    width = row.nodes if row.split else 1
    layer = row.model.layer_read_bytes / (width * share * row.bandwidth) + tau
    if row.split:
        layer += 2 * (parse_kind(row.link).reduce or SOCKET_REDUCE)
    seconds = layer * row.model.layers
    if row.nodes > width:
        seconds += hops(row, table)
    return 1 / seconds


def hops(row: Row, table: Mapping[str, Any]) -> float:
    """Return the seconds of all hops of a pipeline."""
    if row.link == "pcie":
        return row.nodes * PCIE_HOP
    if row.engine == "exo-ring":
        return float(row.nodes * table["hop"]["exo-ring"]) * 1e-6
    return float(2 * (row.nodes - 1) * table["hop"]["llama-cpp"]) * 1e-6


def errors(published: Iterable[Row], table: Mapping[str, Any]) -> list[tuple[float, Row]]:
    """Return ln(predicted / measured) of each row."""
    return [(math.log(predicted(row, table) / row.measured), row) for row in published]


def loss(published: Iterable[Row], table: Mapping[str, Any]) -> float:
    """Return what a fit lowers: absolute errors, so that one odd row counts once."""
    return sum(abs(error) for error, _ in errors(published, table))


class Figures:
    """Figures that are fitted as one, in the tables that hold them."""

    def __init__(self, start: float, *places: tuple[dict[str, float], str]) -> None:
        self.places, self.start = places, start
        self.value = start
        self.put(start)

    def put(self, value: float) -> None:
        """Set all of them."""
        self.value = value
        for table, key in self.places:
            table[key] = value


def unfitted(table: dict[str, Any]) -> list[Figures]:
    """Return the figures to fit, set to one share and one overhead for all.

    So nothing of a row that is left out is in them. Devices whose rows cannot tell two figures
    apart have one.
    """
    share, tau, kind = table["share"], table["tau"], table["kind"]
    # Of Pascal where a P40 would reach as much: above that its rows tell nothing.
    starts = {name: 0.42 if name == "gddr-pascal" else 0.75 for name in share if name != "vllm"}
    figures = [Figures(start, (share, name)) for name, start in starts.items()]
    figures.append(Figures(0.75, (share["vllm"], "hbm")))
    cuda, mlx, vllm = tau["llama-cpp"], tau["mlx"], tau["vllm"]
    figures += [
        Figures(75, (cuda, "gddr-new"), (cuda, "gddr-old")),
        Figures(75, (cuda, "apple-m1-m2")),
        Figures(75, (cuda, "apple-m3")),
        Figures(75, (mlx, "apple-m1-m2"), (mlx, "apple-m3")),
        Figures(75, *((vllm, name) for name in vllm)),
        *(Figures(75, (cuda, name)) for name in ("gddr-pascal", "hbm", "unified", "cpu")),
        *(Figures(2, (kind, name)) for name in ("experts", "hybrid", "mla")),
        Figures(1, (kind, "blocks")),
        Figures(2, (kind["llama-cpp"], "mla")),
    ]
    return figures


def refitted(published: list[Row], table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures fitted on these rows alone, one figure after another.

    A figure that few rows speak of stays near its start: leaving it costs as much as an error.
    """
    fit: dict[str, Any] = deepcopy(dict(table))
    figures = unfitted(fit)

    def of(figure: Figures) -> list[Row]:
        """Return the rows that a figure has a part in."""
        found = []
        for factor in (1.0, 0.5, 2.0, 1.0):
            figure.put(figure.start * factor)
            found.append([predicted(row, fit) for row in published])
        same, less, more, _ = found
        changed = [same[at] != less[at] or same[at] != more[at] for at in range(len(published))]
        return [row for row, own in zip(published, changed, strict=True) if own]

    rows_of = [(figure, of(figure)) for figure in figures]

    def judged(figure: Figures, own: list[Row], value: float) -> float:
        figure.put(value)
        away = math.log(value / figure.start)
        return loss(own, fit) + PULL * away * away

    for _ in range(ROUNDS):
        for figure, own in rows_of:
            trials = [figure.value * factor for factor in FACTORS]
            figure.put(min(trials, key=partial(judged, figure, own)))
    return fit


class Sourced(Protocol):
    """A row of a publication."""

    @property
    def source(self) -> str:
        """The publication."""


R = TypeVar("R", bound=Sourced)


def held_out(
    published: list[R],
    fitted: Callable[[list[R], str], Mapping[str, Any]],
    judged: Callable[[list[R], Mapping[str, Any]], list[tuple[float, R]]],
) -> list[tuple[float, R]]:
    """Return the errors of each row, by figures that are `fitted` without its publication."""
    found: list[tuple[float, R]] = []
    for source in sorted({row.source for row in published}):
        others = [row for row in published if row.source != source]
        own = [row for row in published if row.source == source]
        found += judged(own, fitted(others, source))
    return found


def without_publication(published: list[Row]) -> list[tuple[float, Row]]:
    """Return ln(predicted / measured) of each row, by figures without its publication."""
    from probe_cluster.planning.efficiency import table

    return held_out(published, lambda others, _: refitted(others, table()), errors)


def quantile(values: Iterable[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1]


def run(place: Place) -> Iterator[Figure]:
    """Compare as fitted; then leave each source out, fit on the others, and predict it."""
    from probe_cluster.planning.efficiency import table

    published, figures = rows(), table()
    fitted = errors(published, figures)
    yield from _figures("as fitted", fitted)
    worst = sorted(fitted, key=lambda entry: -abs(entry[0]))[: 5 if place.quick else 10]
    for error, row in worst:
        yield Figure(row.label, error, "ln", None, f"measured {row.measured:g} ({row.source})")
    yield from _figures("source left out", without_publication(published))
    yield from _figures("fresh publications", errors(rows(FRESH), figures))


def _figures(name: str, found: list[tuple[float, Row]]) -> Iterator[Figure]:
    sizes = [abs(error) for error, _ in found]
    note = f"{len(sizes)} published speeds"
    yield Figure(f"{name}: median |ln(predicted/measured)|", median(sizes), "", 0.12, note)
    yield Figure(f"{name}: 90th percentile", quantile(sizes, 0.9), "", 0.33, note)
