"""Clusters for exo's placement, and how good a placement is: whether it loads, and how fast.

What a node has is a report and its wheels; what exo would know of it without the patches is what
its own code at b5375f8 would gather.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from probe_exo.engines import Free, engine_memories, uses
from probe_exo.figures import engines
from probe_exo.installed import Installed
from probe_exo.speed import speed_of

GIB = 1 << 30
Device = dict[str, Any]


def card(name: str, size: float, rate: float, arch: str, vendor: str = "nvidia") -> Device:
    """Return a graphics card with nothing on it: GiB, GB/s."""
    runtime = {"nvidia": "cuda", "amd": "hip", "intel": "sycl"}[vendor]
    memory = {"kind": "dedicated", "total": int(size * GIB), "free": int(size * GIB)}
    return {
        "kind": "gpu",
        "vendor": vendor,
        "name": name,
        "arch": arch,
        "memory": memory,
        "bandwidth": rate * 1e9,
        "backends": [runtime],
    }


RTX_5090 = card("NVIDIA GeForce RTX 5090", 32, 1792, "blackwell")
RTX_4090 = card("NVIDIA GeForce RTX 4090", 24, 1008, "ada")
RTX_3090 = card("NVIDIA GeForce RTX 3090", 24, 936, "ampere")
H100 = card("NVIDIA H100 80GB HBM3", 80, 3350, "hopper")
B580 = card("Intel Arc B580", 12, 456, "xe2", "intel")
XTX = card("AMD Radeon RX 7900 XTX", 24, 960, "rdna3", "amd")
SILENT = RTX_4090 | {"memory": {"kind": None, "total": None}}
GB10 = card("NVIDIA GB10", 0, 273, "blackwell") | {"memory": {"kind": "unified", "total": None}}


def apple(name: str, rate: float, limit: float | None = None) -> Device:
    """Return the GPU of a Mac; `limit` is what somebody lets it wire, in GiB."""
    parts = {} if limit is None else {"limit": int(limit * GIB)}
    memory = {"kind": "unified", "total": None, "parts": parts}
    return {
        "kind": "gpu",
        "vendor": "apple",
        "name": name,
        "memory": memory,
        "bandwidth": rate * 1e9,
        "backends": ["metal"],
    }


@dataclass(frozen=True)
class Node:
    """A computer: GiB of memory that is free, its wheel, its devices, GB/s of its memory."""

    ram: float
    wheel: str
    devices: Sequence[Device] = ()
    rate: float = 90.0
    limit: float | None = None
    """GiB that its container leaves it; exo reads the whole computer's."""
    holds: float | None = None
    """GiB that its engine can allocate, where nobody can tell."""

    def document(self) -> Mapping[str, Any]:
        """Return its report."""
        cpu = {"id": "cpu:0", "kind": "cpu", "bandwidth": self.rate * 1e9}
        gpus = [device | {"id": f"gpu:{at}"} for at, device in enumerate(self.devices)]
        system = "darwin" if self.wheel == "mlx-metal" else "linux"
        node = {"os": system, "arch": "aarch64" if system == "darwin" else "x86_64"}
        return {"schema": 1, "node": node, "devices": [*gpus, cpu]}

    def known(self) -> dict[str, Any]:
        """Return what exo gathers of it with the patches: its engine's memory and speed."""
        document, installed = self.document(), Installed(self.wheel)
        ram = int((self.ram if self.limit is None else self.limit) * GIB)
        own = {d["id"]: d.get("memory", {}).get("free") for d in document["devices"]}
        [engine] = engine_memories(uses(document, installed), Free(ram, ram, own))
        speed = speed_of(document, installed)
        assert speed is not None
        return {
            "ram": int(self.ram * GIB),
            "engine": engine.available,
            "backends": list(engines(document, installed)[0]),
            "speed": {}
            if speed.bandwidth is None
            else {"bandwidth": speed.bandwidth, "layer_seconds": speed.layer_seconds},
        }

    def room(self) -> float:
        """Return how many GiB its engine can allocate, whoever can tell."""
        engine = self.known()["engine"]
        return self.holds or 0.0 if engine is None else engine / GIB

    def known_today(self) -> dict[str, Any]:
        """Return what exo gathers of it without: the computer's RAM, and NVML's count of GPUs, for
        which only the extras for CUDA bring a library."""
        backends = ["MlxCpu"]
        if self.wheel == "mlx-metal":
            backends.append("MlxMetal")
        elif self.wheel.startswith("mlx-cuda") and self.devices:
            backends += ["MlxCuda", "Vllm"]
        return {"ram": int(self.ram * GIB), "engine": None, "backends": backends, "speed": {}}


@dataclass(frozen=True)
class Cluster:
    """Nodes that all reach each other, and a model in GiB."""

    what: str
    nodes: Mapping[str, Node]
    size: float
    links: Sequence[tuple[str, float | None]] = (("ethernet", 10_000.0),)
    """Kind and Mbit/s of each connection that any two nodes have."""
    layers: int = 64
    backends: Sequence[str] = ("MlxMetal", "MlxCuda", "MlxCpu")
    sharding: str = "Pipeline"
    min_nodes: int = 1
    read: float = 1.0
    """Share of the model that a token reads."""

    def case(
        self, patched: bool, by_speed: bool = False, without: Container[str] = ()
    ) -> dict[str, Any]:
        """Return it as `exo_place` reads it; `without` are nodes that lack probe-exo."""
        names = list(self.nodes)
        nodes = {}
        for at, (name, node) in enumerate(self.nodes.items()):
            has_core = patched and name not in without
            own = node.known() if has_core else node.known_today()
            # Without probe-exo exo knows the kinds of a Mac's interfaces alone.
            told = has_core or node.wheel == "mlx-metal"
            faces = [
                {
                    "name": f"en{link}",
                    "ip_address": address(at, link),
                    "interface_type": kind if told else "unknown",
                    "link_mbps": mbps if has_core else None,
                }
                for link, (kind, mbps) in enumerate(self.links)
            ]
            nodes[name] = own | {"interfaces": faces}
        edges = [
            [first, second, address(names.index(second), link)]
            for link in range(len(self.links))
            for one, other in combinations(names, 2)
            for first, second in ((one, other), (other, one))
        ]
        return {
            "nodes": nodes,
            "edges": edges,
            "model": {
                "size": int(self.size * GIB),
                "layers": self.layers,
                "backends": list(self.backends),
            },
            "sharding": self.sharding,
            "min_nodes": self.min_nodes,
            "by_speed": by_speed,
        }


def address(node: int, link: int) -> str:
    """Return a node's address on a link."""
    return f"10.0.{link}.{node + 1}"


# Seconds of a hop, as the fourth patch has them: exo issue 2295.
HOPS = {"ethernet": 0.95e-3, "thunderbolt": 0.95e-3, "wifi": 19e-3}


@dataclass(frozen=True, order=True)
class Worth:
    """How good a placement is: a refusal is better than what does not load, and worse than what
    does; then the speed."""

    loads: int
    """2 where every share fits its engine, 1 for a refusal, 0 where one does not fit."""
    speed: float
    """Predicted tokens per second of one request; 0 where nothing is placed, or a figure lacks."""


def worth(cluster: Cluster, placed: Mapping[str, Any]) -> Worth:
    """Judge a placement by what the nodes' engines can allocate and how fast they read."""
    if "error" in placed:
        return Worth(1, 0.0)
    layers: Mapping[str, int] = placed["layers"]
    count, seconds = len(layers), 0.0
    tensor = cluster.sharding == "Tensor" and count > 1
    for name, own in layers.items():
        known = cluster.nodes[name].known()
        share = 1 / count if tensor else own / cluster.layers
        if share * cluster.size > cluster.nodes[name].room():
            return Worth(0, 0.0)
        speed = known["speed"]
        if not speed:
            return Worth(2, 0.0)
        seconds += share * cluster.size * GIB * cluster.read / speed["bandwidth"]
        seconds += own * speed["layer_seconds"]
    for kinds in reached_by(cluster, placed):
        seconds += max(HOPS[kind] for kind in kinds)
    # Sums in another order differ in their last bits.
    return Worth(2, round(1 / seconds, 9))


def reached_by(cluster: Cluster, placed: Mapping[str, Any]) -> list[set[str]]:
    """Return for each node of a ring the kinds of connection to its neighbours."""
    return [
        {cluster.links[int(one.split(".")[2])][0] for one in addresses}
        for addresses in placed["hosts"].values()
        if addresses  # a node alone reaches nobody
    ]


CPU = Node(96, "mlx-cpu", [RTX_5090])
BIG = Node(256, "mlx-cpu", rate=166)
CUDA_4090 = Node(64, "mlx-cuda-13", [RTX_4090])
ULTRA = Node(480, "mlx-metal", [apple("Apple M3 Ultra", 819.2)])
MAX = Node(110, "mlx-metal", [apple("Apple M4 Max", 546)])
PRO = Node(56, "mlx-metal", [apple("Apple M4 Pro", 273)])

MINI = Node(13, "mlx-metal", [apple("Apple M4", 120)])
OLD_ULTRA = Node(170, "mlx-metal", [apple("Apple M2 Ultra", 819.2, 144)])
SPARK = Node(115, "mlx-cuda-13", [GB10])
SERVER = Node(1900, "mlx-cuda-13", [H100] * 8, rate=300)

SOLD = {
    "ultra": ULTRA,
    "max": MAX,
    "pro": PRO,
    "mini": MINI,
    "oldultra": OLD_ULTRA,
    "spark": SPARK,
    "server": SERVER,
    "4090": CUDA_4090,
    "5090": Node(120, "mlx-cuda-13", [RTX_5090]),
    "3090s": Node(60, "mlx-cuda-12", [RTX_3090] * 4),
    "cpu": Node(120, "mlx-cpu"),
    "cpubeside": CPU,
    "epyc": Node(500, "mlx-cpu", rate=400),
    "small": Node(6, "mlx-cpu", rate=40),
    "silent": Node(60, "mlx-cuda-13", [SILENT], holds=22),
    "box": Node(60, "mlx-cpu", limit=8),
}
"""Computers as people have them."""

CLUSTERS = (
    Cluster("CPU engine beside an RTX 5090: 96 GiB RAM", {"a": CPU}, 50),
    Cluster(
        "CPU engine beside an RTX 4090: 128 GiB RAM", {"a": Node(120, "mlx-cpu", [RTX_4090])}, 60
    ),
    Cluster("CPU engine beside an Arc B580: 32 GiB RAM", {"a": Node(30, "mlx-cpu", [B580])}, 20),
    Cluster("CUDA engine, RTX 5090, 128 GiB RAM", {"a": Node(120, "mlx-cuda-13", [RTX_5090])}, 50),
    Cluster("CUDA engine, RTX 4090, 16 GiB RAM", {"a": Node(14, "mlx-cuda-12", [RTX_4090])}, 20),
    Cluster(
        "CUDA engine, four RTX 3090, 64 GiB RAM", {"a": Node(60, "mlx-cuda-13", [RTX_3090] * 4)}, 80
    ),
    Cluster("CUDA engine, eight H100", {"a": Node(1900, "mlx-cuda-13", [H100] * 8)}, 60),
    Cluster("CUDA engine, eight H100", {"a": Node(1900, "mlx-cuda-13", [H100] * 8)}, 200),
    Cluster(
        "AMD beside NVIDIA: RX 7900 XTX, CPU engine; RTX 4090, CUDA engine",
        {"amd": Node(90, "mlx-cpu", [XTX]), "nvidia": CUDA_4090},
        16,
    ),
    Cluster("256 GiB for the CPU; RTX 4090, CUDA engine", {"cpu": BIG, "cuda": CUDA_4090}, 16),
    Cluster("256 GiB for the CPU; RTX 4090, CUDA engine", {"cpu": BIG, "cuda": CUDA_4090}, 50),
    Cluster(
        "128 GiB for the CPU; two RTX 4090, CUDA engine; a model for CUDA alone",
        {"cpu": Node(120, "mlx-cpu"), "c1": CUDA_4090, "c2": CUDA_4090},
        40,
        backends=["MlxCuda"],
    ),
    Cluster("mixed Macs: M3 Ultra 512, M4 Max 128", {"ultra": ULTRA, "max": MAX}, 90),
    Cluster("mixed Macs: M4 Max 128, M4 Pro 64", {"max": MAX, "pro": PRO}, 140),
    Cluster(
        "a Mac of 64 GB whose GPU may wire 48 GiB",
        {"a": Node(58, "mlx-metal", [apple("Apple M3 Max", 409.6, 48)])},
        55,
    ),
    Cluster(
        "Wi-Fi and Thunderbolt between two RTX 4090 with Linux",
        {"a": CUDA_4090, "b": CUDA_4090},
        40,
        links=[("thunderbolt", 40_000.0), ("wifi", None)],
        min_nodes=2,
    ),
    Cluster(
        "10GbE and Wi-Fi between two RTX 4090 with Linux",
        {"a": CUDA_4090, "b": CUDA_4090},
        40,
        links=[("ethernet", 10_000.0), ("wifi", None)],
        min_nodes=2,
    ),
    Cluster(
        "unknown memory: CUDA engine, NVML silent, 64 GiB RAM",
        {"a": Node(60, "mlx-cuda-13", [SILENT], holds=22)},
        20,
    ),
    Cluster(
        "one node too small: 64, 64 and 4 GiB",
        {"a": Node(60, "mlx-cpu"), "b": Node(60, "mlx-cpu"), "c": Node(3, "mlx-cpu")},
        100,
    ),
    Cluster(
        "tensor sharding on 110 and 10 GiB",
        {"a": MAX, "b": Node(10, "mlx-metal", [apple("Apple M4", 120)])},
        80,
        sharding="Tensor",
        min_nodes=2,
    ),
    Cluster("a DGX Spark", {"a": SPARK}, 60),
    Cluster(
        "a container of 8 GiB on a computer with 64 GiB", {"a": Node(60, "mlx-cpu", limit=8)}, 20
    ),
)


# Clusters of the requests that the fourth patch answers, and published ones.

MIXED = (
    Cluster(
        "five Macs of issue 957's kind: two M4 Pro, M4 Max, M2 Ultra, M3 Ultra",
        {"pro1": PRO, "pro2": PRO, "max": MAX, "oldultra": OLD_ULTRA, "ultra": ULTRA},
        200,
        min_nodes=2,
    ),
    Cluster("M4 Max 128 and two M4 Pro 64", {"max": MAX, "pro1": PRO, "pro2": PRO}, 130),
    Cluster("M2 Ultra 192 and M4 Pro 64", {"oldultra": OLD_ULTRA, "pro": PRO}, 150),
    Cluster("256 GiB for the CPU; RTX 4090, CUDA engine", {"cpu": BIG, "cuda": CUDA_4090}, 50),
    Cluster(
        "DGX Spark and RTX 5090, CUDA engines",
        {"spark": SPARK, "5090": SOLD["5090"]},
        60,
    ),
    Cluster("DGX Spark and M3 Ultra 512", {"spark": SPARK, "ultra": ULTRA}, 100, min_nodes=2),
)


def published_cluster(
    label: str, chip: str, count: int, size: float, layers: int, read: float
) -> Cluster:
    """Return so many of a computer whose speed was published."""
    halo = Node(118, "mlx-cpu", rate=256)
    node = {"M3 Ultra": ULTRA, "M4 Pro": PRO, "Strix Halo": halo, "GB10": SPARK}[chip]
    nodes = {f"n{at}": node for at in range(1, count + 1)}
    return Cluster(label, nodes, size, layers=layers, read=read)
