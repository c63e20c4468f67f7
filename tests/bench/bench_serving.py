"""How far off are predicted speeds of many requests, as fitted and with owners left out?"""

from __future__ import annotations

import math
import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import bench_predictions
from bench_predictions import Figures, held_out, left_out, quantile, settle, weights_of, without
from measure import Figure
from place import Place

if TYPE_CHECKING:
    from probe_cluster import Links, Member, Model
    from probe_cluster.planning.serving import Device, Layout, Load

FITTED = Path(__file__).parent / "serving.toml"
BLIND = Path(__file__).parent / "serving_blind.toml"
FRESH = Path(__file__).parent / "serving_fresh.toml"
# vLLM's own gpu_memory_utilization of these releases; SGLang and TensorRT-LLM take as much.
RESERVE = 0.1
# As that of one request, where errors count as squares.
PULL = 0.15
WITHIN = 1.5


# Each row is itself alone: comparing its members costs more than predicting it.
@dataclass(frozen=True, eq=False)
class Row:
    """One published speed of many requests."""

    model: Model
    members: tuple[Member, ...]
    engine: str
    shares: tuple[int, int, int]
    """Copies, devices that split each layer, and stages."""
    load: Load
    measured: float
    first_token: float
    """Seconds; 0 where it was not published."""
    source: str
    label: str
    older: bool = False
    """Whether the release is one of `older`."""
    server: bool = True
    """Whether tokens were sampled: batched-bench of llama.cpp takes any."""


def rows(path: Path = FITTED) -> list[Row]:
    """Return the published speeds of a file."""
    with path.open("rb") as file:
        data = tomllib.load(file)
    older, alone = data["older"]["sources"], data.get("unsampled", {}).get("sources", ())
    found = [_row(*fields) for fields in data["rows"]["measured"]]
    assert {row.source for row in found} == set(data["sources"]), path.name
    out = left_out(data)
    # A publication of two releases has two names: before the stroke they are the same.
    return [
        replace(
            row,
            older=row.source in older,
            server=row.source not in alone,
            source=row.source.partition("/")[0],
        )
        for row in found
        if row.source not in out
    ]


def _row(
    name: str, bits: str, machines: str, engine: str, layout: str, requests: int, prompt: int,
    answer: int, kv: str, measured: float, first_token: float, source: str,
) -> Row:  # fmt: skip
    from probe_cluster.planning.engines import file_form
    from probe_cluster.planning.model_spec import parse_model
    from probe_cluster.planning.serving import Load

    options = {"model": name, "bits": bits, "kv_bits": kv, "form": file_form(engine)}
    model = replace(parse_model(options), context=prompt + answer)
    ways = {way: int(count) for count, way in re.findall(r"(\d+)([RTP])", layout)}
    replicas, tensor, stages = (ways.get(way, 1) for way in "RTP")
    label = f"{name} {bits} on {machines} {engine} {layout}, {requests} x {prompt}+{answer}"
    load = Load(requests, prompt, answer)
    members = _members(machines, engine)
    shares = replicas, tensor, stages
    return Row(model, members, engine, shares, load, measured, first_token, source, label)


@cache
def _members(machines: str, engine: str) -> tuple[Member, ...]:
    from probe_cluster.planning.members import with_engine
    from probe_cluster.planning.reading import read_members

    return tuple(with_engine(member, engine) for member in read_members([], have=[machines]))


def predicted(row: Row, figures: Any = None) -> Layout:
    """Return the layout of a row, by the package's formula and the figures of efficiency.toml."""
    from probe_cluster.planning.efficiency import table
    from probe_cluster.planning.members import with_engine
    from probe_cluster.planning.predict import RESERVE as OWN
    from probe_cluster.planning.serving import device_of

    server = row.engine in ("vllm", "sglang", "tensorrt-llm")
    reserve = RESERVE if server else OWN
    figures = figures or table()
    first = with_engine(row.members[0], row.engine, figures)
    device = device_of((first, *row.members[1:]), row.model, _links(), reserve, figures)
    assert device is not None, row.label
    return _layout(row, device)


@cache
def _links() -> Links:
    """Return those between nodes: several of the rows are DGX Sparks, joined by ConnectX-7."""
    from probe_cluster.planning.links import KINDS, Links

    return Links(default=KINDS["roce"])


# Most figures that a fit tries are of other rows, or those of the fit before: one asks for 50,000.
@lru_cache(maxsize=1 << 17)
def _layout(row: Row, device: Device) -> Layout:
    from probe_cluster.planning.serving import layout_of

    layout = layout_of(device, row.model, row.load, row.engine, *row.shares, expert=False)
    assert layout is not None, row.label
    return layout


def errors(published: Iterable[Row], figures: Mapping[str, Any]) -> list[tuple[float, Row]]:
    """Return ln(predicted / measured) of each row."""
    return [
        (math.log(predicted(row, _figures_of(row, figures)).total / row.measured), row)
        for row in published
    ]


def _figures_of(row: Row, figures: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the figures of what a row measured."""
    if not row.server:
        serving = figures["serving"]
        own = serving["llama-cpp"] | {"request": 0.0}
        return {**figures, "serving": {**serving, "llama-cpp": own}}
    return of_older(figures) if row.older else figures


@cache
def _older() -> dict[str, float]:
    with FITTED.open("rb") as file:
        return {
            key: value for key, value in tomllib.load(file)["older"].items() if key != "sources"
        }


def of_older(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of older releases of vLLM, which nobody plans with."""
    older = figures.get("older", _older())
    arithmetic, serving = figures["arithmetic"], figures["serving"]
    engines = dict.fromkeys(("vllm", "sglang"), older["arithmetic"])
    costs = {name: older[name] for name in ("step", "request", "layer")}
    costs["begins"] = serving["vllm"]["begins"]
    kinds = figures["kind"]
    own = kinds["vllm"]
    return {
        **figures,
        "kind": {**kinds, "vllm": own | {"mla": own["mla"] * older["mla"]}},
        "arithmetic": {**arithmetic, "engine": arithmetic["engine"] | engines},
        "serving": {**serving, "vllm": costs},
    }


def cost(error: float) -> float:
    """Return what a fit lowers: squares of errors, and beyond `WITHIN` the logarithm of their size.

    So a broken setup, twice as far off, pulls half as much.
    """
    bend, size = math.log(WITHIN), abs(error)
    return error**2 if size < bend else bend**2 * (1 + 2 * math.log(size / bend))


def unfitted(table: dict[str, Any]) -> list[Figures]:
    """Return the figures to fit, set to round starts: what is left out decides none of them."""
    shares, serving = table["arithmetic"], table["serving"]
    arithmetic, kind, arch = shares["vllm"], shares["kind"], shares["arch"]
    return [
        Figures(0.5, (arithmetic, "hbm")),
        *(Figures(0.4, (arithmetic, name)) for name in ("hbm-cdna", "arc", "jetson")),
        Figures(0.4, (arithmetic, "radeon"), (arithmetic, "apu")),
        Figures(5000, (serving["llama-cpp"], "request")),
        Figures(0.9, (serving["llama-cpp"], "apart")),
        *(Figures(0.5, (arithmetic, name)) for name in ("gddr-new", "gddr-old")),
        Figures(0.5, (arithmetic, "unified")),
        Figures(0.7, (arch, "hopper"), (arch, "blackwell-gb100"), (arch, "blackwell-gb300")),
        Figures(1.0, (arch, "cdna4")),
        Figures(0.7, (arch, "turing")),
        Figures(1.0, (table["generation"]["vllm"], "cdna4")),
        Figures(0.8, (shares["bits"], "8")),
        Figures(0.5, (kind, "experts"), (kind, "hybrid"), (kind, "blocks")),
        Figures(0.5, (kind, "mla")),
        Figures(0.7, (serving["all"], "cache")),
        *(Figures(1.0, (serving["hbm-cdna"], name)) for name in serving["hbm-cdna"]),
        Figures(0.7, (serving["all"], "reduce")),
        Figures(1.0, (shares["engine"], "tensorrt-llm")),
        Figures(1.0, (serving["vllm"], "layer")),
        Figures(100, (serving["vllm"], "begins")),
        Figures(1.0, (serving["sglang"], "layer")),
        Figures(500, (serving["sglang"], "begins")),
        Figures(1000, (serving["sglang"], "step")),
        Figures(20, (serving["sglang"], "request")),
        Figures(1000, (serving["vllm"], "step")),
        Figures(20, (serving["vllm"], "request")),
        Figures(1000, (table["older"], "step")),
        Figures(20, (table["older"], "request")),
        Figures(1.0, (table["older"], "arithmetic")),
        Figures(1.0, (table["older"], "layer")),
        Figures(1.0, (table["older"], "mla")),
        Figures(1000, (serving["tensorrt-llm"], "step")),
        Figures(20, (serving["tensorrt-llm"], "request")),
    ]


def refitted(
    published: list[Row], table: Mapping[str, Any], parts: bench_predictions.Parts | None = None
) -> dict[str, Any]:
    """Return the figures fitted on these rows alone, one figure after another."""
    fit: dict[str, Any] = deepcopy({**table, "older": _older()})
    weighed = list(zip(published, weights_of(published), strict=True))

    def error(row: Row) -> float:
        return math.log(predicted(row, _figures_of(row, fit)).total / row.measured)

    settle(unfitted(fit), weighed, error, cost, PULL, {} if parts is None else parts)
    return fit


def without_owner(published: list[Row]) -> list[tuple[float, Row]]:
    """Return ln(predicted / measured) of each row, by figures without those of its owner.

    What that one published of one request is left out, too.
    """
    from probe_cluster.planning.efficiency import table

    one = bench_predictions.rows()
    # The figures of one request that a fit begins with differ by a few percent from fold to fold:
    # which figures have a part in a row does not.
    of_one: bench_predictions.Parts = {}
    of_many: bench_predictions.Parts = {}

    def fitted(others: list[Row], out: Collection[str]) -> dict[str, Any]:
        figures = bench_predictions.refitted(without(one, out), table(), of_one)
        return refitted(others, figures, of_many)

    return held_out(published, fitted, errors)


def run(place: Place) -> Iterator[Figure]:
    """Compare as fitted, with owners left out, and with those that no figure has seen."""
    from probe_cluster.planning.efficiency import table

    published = rows()
    yield from _figures("as fitted", errors(published, table()), 0.2)
    if not place.quick:
        yield from _figures("owners left out", without_owner(published), 0.4, 0.2)
    yield from _figures("sources of 2024", errors(rows(BLIND), table()), None)
    if FRESH.exists():
        yield from _figures("fresh sources", errors(rows(FRESH), table()), None, 0.2)


def _figures(
    name: str, found: list[tuple[float, Row]], most: float | None, goal: float | None = None
) -> Iterator[Figure]:
    sizes = [abs(error) for error, _ in found]
    inside = sum(size <= math.log(WITHIN) for size in sizes) / len(sizes)
    note = f"{len(sizes)} published speeds of {len({row.source for _, row in found})} publications"
    outside = f"serving, {name}: outside a factor of {WITHIN}"
    yield Figure(outside, 1 - inside, "", most, note, goal=goal)
    yield Figure(f"serving, {name}: median |ln(predicted/measured)|", median(sizes), "", None, note)
    yield Figure(f"serving, {name}: 90th percentile", quantile(sizes, 0.9), "", None, note)


def main() -> int:
    """Print the fitted figures, and each row's error by them and without its owner."""
    from probe_cluster.planning.efficiency import table

    published = rows()
    fit = refitted(published, table())
    print(fit["serving"], fit["arithmetic"], fit["older"], fit["kind"]["vllm"])
    for error, row in errors(published, fit):
        print(f"{error:+.2f} {row.source:15} {row.label}")
    for name, found in (
        ("fitted", errors(published, fit)),
        ("left out", without_owner(published)),
    ):
        for figure in _figures(name, found, None):
            print(figure)
        for source in sorted({row.source for row in published}):
            own = [abs(error) for error, row in found if row.source == source]
            inside = sum(error < math.log(WITHIN) for error in own)
            print(f"{name}: {source}: {inside} of {len(own)}, median {median(own):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
