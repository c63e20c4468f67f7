"""How fast is a plan for a large cluster, and how much better than ring memory-weighted is it?"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from measure import Figure
from place import ROOT, Place

sys.path.insert(0, str(ROOT / "plugins" / "cluster" / "tests"))

MODELS = {"8b": (8_030_261_248, 32, 4096), "70b": (70_553_706_496, 80, 8192)}
LAYERS = 128


def run(place: Place) -> Iterator[Figure]:
    """Time plans for 1,000 nodes, then compare predictions on homes of 2 to 64 nodes."""
    yield from _large()
    yield from _exact()
    yield from _homes(place)


def _exact() -> Iterator[Figure]:
    from probe_cluster import Member, Model, plan

    source = random.Random(3)
    model = Model(70_553_706_496, 80, 4.5, hidden=8192)
    times = []
    for _ in range(11):
        members = []
        for at in range(8):
            size, gbs = source.randint(8, 24) << 30, source.uniform(50e9, 1e12)
            members.append(Member(f"n{at}", size, size, (size,), 50.0, 50.0, None, gbs))
        start = perf_counter()
        found = plan("fastest", members, model)
        times.append(perf_counter() - start)
        assert found.gap == 0.0
    yield Figure("fastest: 8 nodes x 80 layers, exact", median(times) * 1e3, "ms", 20.0)


def _large() -> Iterator[Figure]:
    from probe_cluster import STRATEGIES, ClusterError, Member, Model, plan

    source = random.Random(1)
    model = Model(70_553_706_496, LAYERS, 8.0, hidden=8192)
    members = []
    for at in range(1000):
        size = source.randint(4, 64) << 30
        fp16, gbs = source.uniform(1, 200), source.uniform(50e9, 1e12)
        members.append(Member(f"n{at}", size, size, (size,), fp16, fp16, None, gbs))
    for strategy in STRATEGIES:
        times = []
        for _ in range(5):
            start = perf_counter()
            try:
                plan(strategy, members, model)
            except ClusterError:
                break  # proportional gives every node a layer: more nodes than layers
            times.append(perf_counter() - start)
        if times:
            name = f"{strategy}: 1000 nodes x {LAYERS} layers"
            yield Figure(name, median(times) * 1e3, "ms", 50.0)


def _homes(place: Place) -> Iterator[Figure]:
    from home_nodes import NODES, report_of

    from probe_cluster import Links, Model, compare, member
    from probe_cluster.planning.links import KINDS

    folder = Path(place.folder) / "home"
    folder.mkdir(exist_ok=True)
    reports: dict[str, Any] = {name: report_of(name, folder) for name in NODES}
    source, worse = random.Random(2), 0
    for count in (2, 4, 8, 16, 64):
        ratios = []
        for _ in range(place.rounds(60, 15)):
            names = [source.choice(list(reports)) for _ in range(count)]
            members = [
                member(f"{name}{at}", reports[name], bandwidth=25e9)
                for at, name in enumerate(names)
            ]
            links = Links(default=KINDS[source.choice(["wifi", "1gbe", "10gbe"])])
            for left, right in zip(members[::2], members[1::2], strict=False):
                links.connect(left.id, right.id, KINDS["thunderbolt5"])
            params, layers, hidden = MODELS[source.choice(list(MODELS))]
            found = compare(members, Model(params, layers, 4.5, hidden=hidden), links=links)
            ring, best = found.plans[0] if found.plans else None, found.best
            if ring is None or best is None or not ring.fits or ring.strategy != "memory":
                continue
            assert ring.seconds_per_token is not None
            assert best.seconds_per_token is not None
            ratio = ring.seconds_per_token / best.seconds_per_token
            worse += ratio < 1
            ratios.append(ratio)
        if ratios:
            note = f"{min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} homes"
            name = f"ring memory-weighted / best, {count} nodes"
            yield Figure(name, median(ratios), "x", 1.0, note, least=True)
    yield Figure("homes where the best plan is slower", worse, "", 0)
