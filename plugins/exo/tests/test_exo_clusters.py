"""exo's own `place_instance` on clusters, with the patches and without: none becomes worse."""

from __future__ import annotations

import json
import os
import random
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import exo_checkout as exo
import pytest
from exo_clusters import (
    CLUSTERS,
    MIXED,
    SOLD,
    Cluster,
    Worth,
    published_cluster,
    reached_by,
    worth,
)

from probe_cluster.planning import parse_model

PAGE = Path(__file__).parents[1] / "docs" / "exo-clusters.md"
HERE = Path(__file__).parent
Placed = list[Mapping[str, Any]]

RANDOM = 2000
"""Random clusters; what becomes of them is on the page."""

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(exo.why_not() is not None, reason=str(exo.why_not())),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exo.unpack(tmp_path_factory.mktemp("exo") / "base")


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = exo.unpack(tmp_path_factory.mktemp("exo") / "patched")
    exo.apply(folder, exo.PATCHES)
    return folder


def place(folder: Path, clusters: Sequence[Cluster], known: bool, by_speed: bool = False) -> Placed:
    return place_cases(folder, [cluster.case(known, by_speed) for cluster in clusters])


def place_cases(folder: Path, cases: list[dict[str, Any]]) -> Placed:
    found: Placed = json.loads(exo.run(folder, str(HERE / "exo_place.py"), given=json.dumps(cases)))
    return found


def shown(cluster: Cluster, placed: Mapping[str, Any], own: Worth) -> str:
    """Return a placement in a few words."""
    if "error" in placed:
        return "refused"
    layers = placed["layers"]
    where = ", ".join(f"{name} {layers[name]}" for name in cluster.nodes if name in layers)
    if len(cluster.nodes) == 1:
        where = "placed"
    if own.loads == 0:
        return f"{where}: **does not load**"
    if len(cluster.links) > 1:
        where += f" by {'/'.join(sorted(set().union(*reached_by(cluster, placed))))}"
    return f"{where}: {own.speed:.1f} tok/s" if own.speed else where


def row(number: int, cluster: Cluster, before: Any, after: Any) -> str:
    texts = [shown(cluster, placed, worth(cluster, placed)) for placed in (before, after)]
    return f"| {number} | {cluster.what} | {cluster.size:g} | {texts[0]} | {texts[1]} |"


def check_page(heading: str, rows: list[str]) -> None:
    """Compare rows with those of a table of the page; EXO_WRITE_PAGE=1 writes them instead.

    Speeds are predictions, which change where the planner's figures are fitted again.
    """
    text = PAGE.read_text("utf-8")
    before, title, rest = text.partition(f"## {heading}\n")
    section, following, after = rest.partition("\n## ")
    old = [line for line in section.splitlines() if line.startswith("| ")][1:]
    if os.environ.get("EXO_WRITE_PAGE") == "1":
        section = section.replace("\n".join(old), "\n".join(rows))
        PAGE.write_text(before + title + section + following + after, "utf-8")
    else:
        assert rows == old, "\n".join(rows)


def users() -> str:
    """Return the page for exo's users, in one line."""
    return " ".join((PAGE.parent / "exo-for-users.md").read_text("utf-8").split())


def test_no_placement_becomes_worse_and_the_page_has_them(base: Path, patched: Path) -> None:
    before, after = place(base, CLUSTERS, False), place(patched, CLUSTERS, True)
    rows, better = [], 0
    for number, (cluster, one, other) in enumerate(zip(CLUSTERS, before, after, strict=True), 1):
        assert worth(cluster, other) >= worth(cluster, one), cluster.what
        better += worth(cluster, other) > worth(cluster, one)
        rows.append(row(number, cluster, one, other))
    check_page("Before and after", rows)
    for number, text in (
        (10, "run on an RTX 4090 at {1:.0f} tokens/s, and not at {0:.0f}"),
        (16, "make {1:.0f} tokens/s, and not {0:.0f}."),
    ):
        pair = (before[number - 1], after[number - 1])
        speeds = [worth(CLUSTERS[number - 1], placed).speed for placed in pair]
        assert text.format(*speeds) in users()
    assert (len(rows), better) == (22, 11)


@pytest.mark.parametrize("names", ["0001", "0001 0002", "0001 0003"])
def test_each_patch_alone_makes_none_worse(base: Path, tmp_path: Path, names: str) -> None:
    folder = exo.unpack(tmp_path / "some")
    exo.apply(folder, [patch for patch in exo.PATCHES if patch.name[:4] in names.split()])
    before, after = place(base, CLUSTERS, False), place(folder, CLUSTERS, True)
    for cluster, one, other in zip(CLUSTERS, before, after, strict=True):
        assert worth(cluster, other) >= worth(cluster, one), cluster.what


def test_without_probe_exo_the_patched_exo_places_as_before(base: Path, patched: Path) -> None:
    """But for what it got wrong without it too: an uneven tensor share, a backend hidden."""
    same = [cluster for cluster in CLUSTERS if cluster.sharding == "Pipeline"]
    same = [cluster for cluster in same if list(cluster.backends) != ["MlxCuda"]]
    assert place(patched, same, False) == place(base, same, False)


def random_cluster(source: random.Random) -> Cluster:
    nodes = {
        f"{name}-{at}": SOLD[name]
        for at, name in enumerate(source.choices(list(SOLD), k=source.randint(1, 5)))
    }
    return Cluster(
        "random",
        nodes,
        source.choice([4, 15, 40, 70, 130, 300]),
        links=source.choice([[("ethernet", 10_000.0)], [("wifi", None)]]),
        layers=source.choice([28, 61, 80]),
        sharding=source.choice(["Pipeline", "Pipeline", "Tensor"]),
        min_nodes=source.choice([1, 1, 2]),
        read=source.choice([1.0, 0.05]),
    )


def fills_more_than_nine_tenths(cluster: Cluster, placed: Mapping[str, Any]) -> bool:
    """Return whether a node has no tenth of its engine's memory left for the context."""
    sizes = {name: own / cluster.layers for name, own in placed["layers"].items()}
    return any(
        size * cluster.size > 0.9 * cluster.nodes[name].room() for name, size in sizes.items()
    )


def computes_on_the_cpu(cluster: Cluster, placed: Mapping[str, Any]) -> bool:
    return any(cluster.nodes[name].known()["backends"] == ["MlxCpu"] for name in placed["layers"])


def test_no_placement_of_random_clusters_becomes_worse(base: Path, patched: Path) -> None:
    """None stops to load; slower are those that filled a node, and those that leave a processor."""
    source = random.Random(31)
    clusters = [random_cluster(source) for _ in range(RANDOM)]
    before, after = place(base, clusters, False), place(patched, clusters, True)
    by_speed = place(patched, clusters, True, by_speed=True)
    counts: Counter[str] = Counter()
    for cluster, *placed in zip(clusters, before, after, by_speed, strict=True):
        first, second, third = (worth(cluster, one) for one in placed)
        assert second.loads >= first.loads, cluster
        assert third.loads >= second.loads, cluster
        counts["mended"] += second.loads > first.loads
        if second.loads == first.loads == 2 and first.speed:
            counts["load before and after"] += 1
            counts["faster"] += second.speed > first.speed * 1.001
            if second.speed < first.speed * (1 - 1e-9):
                leaves_cpu = computes_on_the_cpu(cluster, placed[0])
                leaves_cpu = leaves_cpu and not computes_on_the_cpu(cluster, placed[1])
                assert leaves_cpu or fills_more_than_nine_tenths(cluster, placed[0]), cluster
                counts["a GPU instead of a CPU, slower"] += leaves_cpu
                counts["a tenth left, slower"] += not leaves_cpu
        if cluster.sharding == "Pipeline" and "layers" in placed[2]:
            assert third.speed >= second.speed * (1 - 1e-9), cluster
            counts["faster by speed"] += third.speed > second.speed * 1.001
    exact = [RANDOM, counts["mended"], counts["load before and after"]]
    told = re.findall(r"\*\*([\d,]+)\*\*", PAGE.read_text("utf-8"))
    assert [int(number.replace(",", "")) for number in told] == exact
    # These go by predicted speeds: the page says about how many there are.
    assert 200 <= counts["faster"] <= 280
    assert 14 <= counts["a GPU instead of a CPU, slower"] <= 26
    assert 1 <= counts["a tenth left, slower"] <= 12
    assert 260 <= counts["faster by speed"] <= 370


def test_no_placement_stops_to_load_where_some_nodes_lack_probe_exo(
    base: Path, patched: Path
) -> None:
    source = random.Random(5)
    clusters = [random_cluster(source) for _ in range(500)]
    lacking = [{name for name in one.nodes if source.random() < 0.5} for one in clusters]
    pairs = list(zip(clusters, lacking, strict=True))
    before = place(base, clusters, False)
    after = place_cases(patched, [one.case(True, False, without) for one, without in pairs])
    by_speed = place_cases(patched, [one.case(True, True, without) for one, without in pairs])
    mended = 0
    for cluster, *placed in zip(clusters, before, after, by_speed, strict=True):
        first, second, third = (worth(cluster, one) for one in placed)
        assert first.loads <= second.loads <= third.loads, cluster
        mended += second.loads > first.loads
    assert mended > 0


# The fourth patch.


def test_by_speed_is_never_slower_and_the_page_has_it(patched: Path) -> None:
    today, planned = place(patched, MIXED, True), place(patched, MIXED, True, by_speed=True)
    rows = []
    for number, (cluster, one, other) in enumerate(zip(MIXED, today, planned, strict=True), 1):
        assert worth(cluster, other) >= worth(cluster, one), cluster.what
        rows.append(row(number, cluster, one, other))
    check_page("By speed", rows)
    for number, text in (
        (5, "an RTX 5090 make {1:.1f} tokens/s, and not {0:.1f};"),
        (3, "an M4 Pro {1:.1f}, and not {0:.1f}."),
    ):
        pair = (today[number - 1], planned[number - 1])
        speeds = [worth(MIXED[number - 1], placed).speed for placed in pair]
        assert text.format(*speeds) in users()


def test_by_speed_is_at_least_as_good_as_exos_on_published_clusters(patched: Path) -> None:
    with (exo.ROOT / "tests" / "bench" / "published.toml").open("rb") as file:
        measured = tomllib.load(file)["rows"]["measured"]
    rows: dict[tuple[str, str, str], dict[int, float]] = {}
    for name, bits, chip, layout, _, link, speed, *_ in measured:
        if link != "pcie" and not layout.endswith("T"):
            rows.setdefault((name, bits, chip), {})[int(layout.rstrip("P"))] = speed
    clusters, published = [], []
    for (name, bits, chip), speeds in rows.items():
        if max(speeds) > 1:
            model = parse_model({"model": name, "bits": bits})
            read = model.layer_read_bytes * model.layers / model.weight_bytes
            size, label = model.weight_bytes / (1 << 30), f"{name} {bits}, {chip}"
            count = max(speeds)
            clusters.append(published_cluster(label, chip, count, size, model.layers, read))
            published.append(speeds)
    assert len(clusters) == 8
    today, planned = place(patched, clusters, True), place(patched, clusters, True, by_speed=True)
    lines = []
    for cluster, speeds, one, other in zip(clusters, published, today, planned, strict=True):
        assert worth(cluster, other) >= worth(cluster, one), cluster.what
        used = [len(placed["layers"]) for placed in (one, other)]
        if all(count in speeds for count in used):
            assert speeds[used[1]] >= speeds[used[0]], cluster.what
        told = ", ".join(f"{count}: {speed:g}" for count, speed in sorted(speeds.items()))
        found = [f"{worth(cluster, placed).speed:.1f}" for placed in (one, other)]
        pairs = [f"{count}: {speed}" for count, speed in zip(used, found, strict=True)]
        lines.append(f"| {cluster.what} | {len(cluster.nodes)} | {told} | {' | '.join(pairs)} |")
    check_page("Published clusters", lines)
