"""How far off are predicted speeds from published ones, as fitted and with owners left out?"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from measure import Figure
from place import Place

if TYPE_CHECKING:
    from probe_cluster import Model

PUBLISHED = Path(__file__).parent / "published.toml"
FRESH = Path(__file__).parent / "published_fresh.toml"
# A figure is tried this much above and below, and by half as much where neither is better.
STEP, LEAST = 0.2, 0.01
ROUNDS = 15
# A figure that is twice its start costs as much as one row, alone in its publication, that is off
# by a factor of 1.8: of the pulls that were tried it predicts owners that are left out best.
PULL = 1.0
# Errors up to this count as squares, so that no figure follows one odd row of few.
BEND = 0.2
# So many times owners are left out, a part of them at once.
FOLDS = 10
# Set, not fitted: few rows have such links.
PCIE_HOP = 50e-6
# distributed-llama PR 64: by sockets over 1GbE, which the package plans no split for.
SOCKET_REDUCE = 900e-6
# Its figure is not a plan's: nobody starts a server of 2025.
OLDER = "older"
# Classes whose kernels of vLLM are not those of NVIDIA's cards, or are fed by slower cores.
OF_OTHERS = ("hbm-cdna", "radeon", "apu", "arc", "jetson")
RUN_LLAMA = ("llama.cpp", "llama.cpp-rpc", "ollama")
COMPUTES = {"exo-ring": "mlx"} | dict.fromkeys(RUN_LLAMA, "llama-cpp")


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
    dies: int = 1
    """Two of an Ultra of Apple."""
    older: bool = False
    """Whether it is of vLLM before 0.14, or of its like of that time."""
    cores: int | None = None
    """Of a CPU."""
    arch: str = ""
    """Architecture, where figures differ by it."""

    @cached_property
    def bytes_seconds(self) -> float:
        """Seconds of a token were the whole bandwidth reached."""
        width = self.nodes if self.split else 1
        return self.model.layers * self.model.layer_read_bytes / (width * self.bandwidth)

    @cached_property
    def beside(self) -> float:
        """Seconds of a token that links cost."""
        from probe_cluster.planning.links import parse_kind

        if self.split:
            reduce = parse_kind(self.link).reduce_among(self.nodes)
            return 2 * self.model.layers * (reduce or SOCKET_REDUCE)
        return hops(self) if self.nodes > 1 else 0.0


def left_out(data: Mapping[str, Any]) -> set[str]:
    """Return the publications of a file that are not fitted, whatever the reason."""
    return {source for sources in data.get("left-out", {}).values() for source in sources}


def rows(path: Path = PUBLISHED) -> list[Row]:
    """Return the published speeds of a file, but for those left out."""
    from probe_cluster.planning.model_spec import parse_model

    with path.open("rb") as file:
        data = tomllib.load(file)
    older, out = data.get(OLDER, {}).get("sources", ()), left_out(data)
    fitted = tomllib.loads(PUBLISHED.read_text())["chips"]
    found = []
    for name, bits, chip, layout, engine, link, measured, source, context in data["rows"][
        "measured"
    ]:
        if source in out:
            continue
        own = {"model": name, "bits": bits, "context": context, "form": form_of(engine)}
        model = parse_model(own)
        # Who collects rows may not know what bounds a chip, where the fitted rows do.
        kind, bandwidth, *more = max(data["chips"][chip], fitted.get(chip, []), key=len)
        # Of a CPU the third figure is its cores, else operations.
        cores, tera = (more, []) if kind == "cpu" else ([None], more)
        operations = tera[0] * 1e3 / bandwidth if tera else None
        nodes = int(layout.rstrip("PT"))
        label = f"{name} {bits} on {chip} x {layout}"
        fields = (nodes, layout.endswith("T"), engine, link, measured, source, label)
        last = (2 if "Ultra" in chip else 1, source in older, cores[0] if cores else None)
        known = (model, chip, kind, bandwidth * 1e9, operations)
        found.append(Row(*known, *fields, *last, arch_of(chip)))
    return found


_ARCHES = {
    "H100|H20": "hopper",
    "B[123]00": "blackwell-gb100",
    "MI35": "cdna4",
    "MI": "cdna3",
    "V100": "volta",
    "20[678]0|T4|16[56]0": "turing",
}


def arch_of(chip: str) -> str:
    """Return the architecture of a chip, where its figures may differ by it."""
    return next((arch for name, arch in _ARCHES.items() if re.match(name, chip)), "")


def form_of(engine: str) -> str | None:
    """Return the kind of files that an engine of a row reads."""
    return {"llama-cpp": "gguf", "mlx": "mlx"}.get(COMPUTES.get(engine, engine))


def predicted(row: Row, figures: Mapping[str, Any]) -> float:
    """Return tokens per second by the package's formula and these figures."""
    from probe_cluster.planning.efficiency import (
        SIMPLE,
        bounded_share,
        core_seconds,
        generation_factor,
        kind_factor,
        step_seconds,
    )

    engine, model = COMPUTES.get(row.engine, row.engine), row.model
    share = bounded_share(figures, engine, row.kind, row.operations, model.bits)
    assert share is not None, row.label
    if model.quant in SIMPLE:
        share = min(1.0, share * figures["simple"].get(engine, 1.0))
    tau = figures["tau"][engine][row.kind] * 1e-6
    if row.kind == "cpu":
        tau += core_seconds(figures, engine, row.cores)
    tau *= kind_factor(figures, engine, model.kind, row.arch)
    tau *= generation_factor(figures, engine, row.arch)
    if model.norms:
        tau *= kind_factor(figures, engine, "norms")
    if row.dies > 1:
        tau *= figures["dies"].get(engine, 1.0)
    beside = row.beside + step_seconds(figures, engine, row.engine)
    if row.older:
        beside += (figures.get(OLDER) or _older())["token"] * 1e-6
    return float(1 / (row.bytes_seconds / share + model.layers * tau + beside))


@cache
def _older() -> dict[str, float]:
    with PUBLISHED.open("rb") as file:
        return {"token": tomllib.load(file)[OLDER]["token"]}


def hops(row: Row) -> float:
    """Return the seconds of all hops of a pipeline."""
    from probe_cluster.planning.efficiency import table

    if row.link == "pcie":
        return row.nodes * PCIE_HOP
    if row.engine == "exo-ring":
        return float(row.nodes * table()["hop"]["exo-ring"]) * 1e-6
    return float(2 * (row.nodes - 1) * table()["hop"]["llama-cpp"]) * 1e-6


def errors(published: Iterable[Row], table: Mapping[str, Any]) -> list[tuple[float, Row]]:
    """Return ln(predicted / measured) of each row."""
    return [(math.log(predicted(row, table) / row.measured), row) for row in published]


class Sourced(Protocol):
    """A row of a publication."""

    @property
    def source(self) -> str:
        """The publication."""


R = TypeVar("R", bound=Sourced)


def weights_of(published: Sequence[Sourced]) -> list[float]:
    """Return what each row counts in a fit: all of a publication as the root of its rows."""
    counts = Counter(row.source for row in published)
    return [1 / math.sqrt(counts[row.source]) for row in published]


class Figures:
    """Figures that are fitted as one, in the tables that hold them."""

    def __init__(self, start: float, *places: tuple[dict[str, float], str]) -> None:
        # A whole number would be no factor of `kind_factor`.
        self.places, self.start, self.value = places, float(start), float(start)
        self.put(self.start)

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
    share, tau, kind, arch = table["share"], table["tau"], table["kind"], table["generation"]
    # Of Pascal where a P40 would reach as much: above that its rows tell nothing.
    starts = {"gddr-new": 0.75, "gddr-pascal": 0.42, "cpu": 0.75}
    starts |= {"hbm": 0.75, "hbm-cdna": 0.5, "arc": 0.75, "arc-alchemist": 0.4, "jetson": 0.5}
    starts["radeon-gcn"] = 0.5
    figures = [Figures(start, (share, name)) for name, start in starts.items()]
    figures += [
        Figures(0.75, (table, "apple-m1-m2"), (table, "apple-m3"))
        for table in (share, share["mlx"])
    ]
    figures.append(Figures(0.75, (share, "gddr-old"), (share, "radeon")))
    figures.append(Figures(0.75, (share, "unified"), (share, "apu")))
    figures.append(Figures(0.75, (share["vllm"], "hbm")))
    figures += [Figures(0.75, (share["vllm"], name)) for name in ("hbm-cdna", "arc", "jetson")]
    figures.append(Figures(0.75, (share["vllm"], "radeon"), (share["vllm"], "apu")))
    cuda, mlx, vllm = tau["llama-cpp"], tau["mlx"], tau["vllm"]
    figures += [
        Figures(0.05, (table["bound"], "hbm")),
        Figures(0.035, (table["bound"], "apple-m1-m2")),
        Figures(1, (table["simple"], "llama-cpp")),
        Figures(1, (table["dies"], "llama-cpp"), (table["dies"], "mlx")),
        Figures(500, (table[OLDER], "token")),
        Figures(5, (table["cores"], "llama-cpp")),
        Figures(1, (arch["vllm"], "turing")),
        Figures(1, (arch["vllm"], "hopper")),
        Figures(1, (arch["vllm"], "blackwell-gb100"), (arch["vllm"], "blackwell-gb300")),
        Figures(1, *((arch["llama-cpp"], name) for name in arch["llama-cpp"])),
        Figures(75, (cuda, "gddr-new"), (cuda, "gddr-old")),
        Figures(75, (cuda, "hbm")),
        Figures(75, *((cuda, name) for name in ("radeon", "radeon-gcn", "hbm-cdna"))),
        Figures(200, (cuda, "jetson")),
        *(Figures(75, (mlx, name)) for name in mlx),
        Figures(75, *((vllm, name) for name in vllm if name not in OF_OTHERS)),
        *(Figures(75, (vllm, name)) for name in ("hbm-cdna", "arc", "jetson")),
        Figures(75, (vllm, "radeon"), (vllm, "apu")),
        Figures(75, (cuda, "arc"), (cuda, "arc-alchemist")),
        Figures(75, (cuda, "unified"), (cuda, "apu")),
        *(Figures(500, (table["step"], name)) for name in ("vllm", "ollama")),
        *(Figures(75, (cuda, name)) for name in ("gddr-pascal", "apple-m1-m2", "apple-m3", "cpu")),
        *(Figures(2, (kind, name)) for name in ("experts", "hybrid", "mla")),
        Figures(1, (kind, "blocks")),
        *(Figures(2, (kind["llama-cpp"], name)) for name in ("experts", "hybrid", "mla")),
        Figures(2, (kind["vllm"], "mla")),
        Figures(2, (kind["cdna"], "experts")),
        Figures(3, (kind["cdna"], "mla")),
        Figures(1, (kind["llama-cpp"], "norms")),
        Figures(1, (kind["vllm"], "norms")),
    ]
    return figures


Parts = dict[tuple[int, int], bool]
"""Whether a figure, by its place, has a part in a row, by its identity.

It is found once for several fits that start with the same figures.
"""


def refitted(
    published: list[Row], table: Mapping[str, Any], parts: Parts | None = None
) -> dict[str, Any]:
    """Return the figures fitted on these rows alone, one figure after another.

    A figure that few rows speak of stays near its start: leaving it costs as much as an error.
    """
    fit: dict[str, Any] = deepcopy({**table, OLDER: dict(_older())})
    weighed = list(zip(published, weights_of(published), strict=True))

    def error(row: Row) -> float:
        return math.log(predicted(row, fit) / row.measured)

    settle(unfitted(fit), weighed, error, cost, PULL, {} if parts is None else parts)
    return fit


def cost(error: float) -> float:
    """Return what a fit lowers: absolute errors, so that an odd row counts once, or squares below.

    Fits of sets 1 to 7 predict the eighth, and of all others each owner's, with fewer large errors
    than by absolute errors alone.
    """
    size = abs(error)
    return size - BEND / 2 if size > BEND else size**2 / (2 * BEND)


def settle(
    figures: Sequence[Figures],
    weighed: Sequence[tuple[R, float]],
    error: Callable[[R], float],
    cost: Callable[[float], float],
    pull: float,
    parts: Parts,
) -> None:
    """Set each figure to what costs its rows least, one after another, until none moves further.

    `error` is that of a row by the figures as they stand. `parts` is completed.
    """
    now = [error(row) for row, _ in weighed]
    search = [
        (figure, _rows_of(figure, number, weighed, error, now, parts))
        for number, figure in enumerate(figures)
    ]
    steps = [STEP] * len(search)
    for _ in range(ROUNDS):
        for at, (figure, own) in enumerate(search):
            if steps[at] < LEAST:
                continue
            value = figure.value
            best = pull * _moved(figure) + sum(weighed[row][1] * cost(now[row]) for row in own)
            for step in (steps[at], -steps[at]):
                figure.put(value * math.exp(step))
                found = [error(weighed[row][0]) for row in own]
                loss = sum(weighed[row][1] * cost(new) for row, new in zip(own, found, strict=True))
                if pull * _moved(figure) + loss < best:
                    for row, new in zip(own, found, strict=True):
                        now[row] = new
                    break
            else:
                figure.put(value)
                steps[at] /= 2


def _moved(figure: Figures) -> float:
    return math.log(figure.value / figure.start) ** 2


def _rows_of(
    figure: Figures,
    number: int,
    weighed: Sequence[tuple[R, float]],
    error: Callable[[R], float],
    now: Sequence[float],
    parts: Parts,
) -> list[int]:
    """Return the places of the rows that the figure of a number has a part in."""
    keys = [(number, id(row)) for row, _ in weighed]
    unseen = [at for at, key in enumerate(keys) if key not in parts]
    found = set()
    for factor in (0.5, 2.0) if unseen else ():
        figure.put(figure.start * factor)
        found |= {at for at in unseen if error(weighed[at][0]) != now[at]}
    figure.put(figure.start)
    parts.update({keys[at]: at in found for at in unseen})
    return [at for at, key in enumerate(keys) if parts[key]]


def held_out(
    published: list[R],
    fitted: Callable[[list[R], Collection[str]], Mapping[str, Any]],
    judged: Callable[[list[R], Mapping[str, Any]], list[tuple[float, R]]],
) -> list[tuple[float, R]]:
    """Return the errors of each row, by figures that are `fitted` without those of its owner."""
    found: list[tuple[float, R]] = []
    owners = sorted({owner_of(row.source) for row in published})
    for fold in range(FOLDS):
        out = set(owners[fold::FOLDS])
        own = [row for row in published if owner_of(row.source) in out]
        found += judged(own, fitted(without(published, out), out))
    return found


def owner_of(source: str) -> str:
    """Return who published: a project's or a person's publications are named alike.

    What a project measures twice it measures the same way, so none of it tells of the others.
    """
    return re.split("[-/]", source)[0]


def without(published: list[R], owners: Collection[str]) -> list[R]:
    """Return the rows of others."""
    return [row for row in published if owner_of(row.source) not in owners]


def without_owner(published: list[Row]) -> list[tuple[float, Row]]:
    """Return ln(predicted / measured) of each row, by figures without those of its owner."""
    from probe_cluster.planning.efficiency import table

    parts: Parts = {}
    return held_out(published, lambda others, _: refitted(others, table(), parts), errors)


def quantile(values: Iterable[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1]


def run(place: Place) -> Iterator[Figure]:
    """Compare as fitted; then leave owners out, fit on the others, and predict theirs."""
    from probe_cluster.planning.efficiency import table

    published, figures = rows(), table()
    fitted = errors(published, figures)
    yield from _figures("as fitted", fitted)
    worst = sorted(fitted, key=lambda entry: -abs(entry[0]))[: 5 if place.quick else 10]
    for error, row in worst:
        yield Figure(row.label, error, "ln", None, f"measured {row.measured:g} ({row.source})")
    yield from _figures("owners left out", without_owner(published))
    if FRESH.exists():
        yield from _figures("fresh publications", errors(rows(FRESH), figures))


def _figures(name: str, found: list[tuple[float, Row]]) -> Iterator[Figure]:
    sizes = [abs(error) for error, _ in found]
    note = f"{len(sizes)} published speeds"
    yield Figure(f"{name}: median |ln(predicted/measured)|", median(sizes), "", 0.12, note)
    yield Figure(f"{name}: 90th percentile", quantile(sizes, 0.9), "", 0.33, note)
