"""Old exo's own partitioning against ours, where its source is: this repository has nothing of it.

`OLD_EXO` names a checkout of commit 5f18faec1. Its `device_capabilities.py` is replaced as a fork
replaces it; its topology, ring and shards are its own. They are under the GPL, so they are read
there and never copied.
"""

from __future__ import annotations

import importlib
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from probe_cluster import ring_memory_weighted, shards
from probe_exo import device_capabilities as drop_in
from probe_exo.device_capabilities import DeviceCapabilities, DeviceFlops

OLD_EXO = os.environ.get("OLD_EXO")
PACKAGES = ("exo", "exo.topology", "exo.inference")

pytestmark = pytest.mark.skipif(
    OLD_EXO is None, reason="OLD_EXO names no checkout of old exo (5f18faec1)"
)


@pytest.fixture
def old() -> Iterator[tuple[Any, Any, Any]]:
    """Import old exo's topology, strategy and shards, without what its packages start."""
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "exo"}
    try:
        for name in PACKAGES:
            package = ModuleType(name)
            package.__path__ = [str(Path(str(OLD_EXO), *name.split(".")))]
            sys.modules[name] = package
        sys.modules["exo.topology.device_capabilities"] = drop_in
        yield (
            importlib.import_module("exo.topology.topology"),
            importlib.import_module("exo.topology.ring_memory_weighted_partitioning_strategy"),
            importlib.import_module("exo.topology.partitioning_strategy"),
        )
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "exo"]:
            del sys.modules[name]
        sys.modules.update(before)


def node(memory: int) -> DeviceCapabilities:
    flops = DeviceFlops(fp32=1, fp16=2, int8=4)
    return DeviceCapabilities(model="model", chip="chip", memory=memory, flops=flops)


@pytest.mark.heavy
def test_none_of_ten_thousand_topologies_differs(old: tuple[Any, Any, Any]) -> None:
    topology, strategy, partitioning = old
    source, differ = random.Random(31), 0
    for _ in range(10_000):
        sizes = [8192, 16384, 24564, 131072, source.randrange(1, 1_500_000)]
        nodes = [
            (f"{source.getrandbits(64):016x}", source.choice(sizes))
            for _ in range(source.randint(1, 32))
        ]
        theirs = topology.Topology()
        for id_, memory in nodes:
            theirs.update_node(id_, node(memory))
        layers = source.randint(1, 200)
        parts = strategy.RingMemoryWeightedPartitioningStrategy().partition(theirs)
        stretches = partitioning.map_partitions_to_shards(parts, layers, "model")
        own = ring_memory_weighted(nodes)
        differ += (
            [(part.node_id, part.start, part.end) for part in parts],
            [(shard.start_layer, shard.end_layer, shard.n_layers) for shard in stretches],
        ) != ([tuple(part) for part in own], [shard[1:] for shard in shards(own, layers)])
    assert differ == 0
