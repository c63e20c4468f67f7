"""What files say of processors, as it passes from function to function; for type checkers alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

Core = list[int]
"""The CPUs of one core: its threads."""

Place = tuple[int, int | None]
"""Package and core of a processor ("physical id" and "core id"); None where no file tells it."""

Nodes = Mapping[int, frozenset[int] | None]
"""NUMA node to its CPUs; None stands for all of a machine of one node."""


class Midr(TypedDict, total=False):
    """What names an Arm core: parts of its Main ID Register."""

    implementer: int
    part: int
    variant: int


class CpuFacts(Midr, total=False):
    """What /proc/cpuinfo says; `cores` and `threads` are those of one x86 package."""

    name: str
    vendor: str
    vendor_id: str
    family: int
    model: int
    stepping: int
    architecture: int
    flags: list[str]
    mhz: float
    cores: int
    threads: int
    numbers: list[int]
    by_cluster: bool
    """Whether these kernels number packages by the device tree's clusters."""
    cpus: dict[int, Midr]
    one_midr: bool
    """Whether one core is described for all: kernels before 3.19."""
    places: dict[int, Place]


class Cluster(Midr, total=False):
    """Cores of one kind; `kind`, `cores` and `threads` are the report's, with its clocks in MHz."""

    kind: str
    cores: int
    threads: int
    first: int
    max_mhz: float
    base_mhz: float
    current_mhz: float
    allowed: int
    guessed: bool
    members: list[Core]


class Package(TypedDict, total=False):
    """The counts of a package, and its first CPU."""

    first: int
    threads: int
    cores: int
    numa_node: int
    numa_nodes: list[int]
    clusters: list[Cluster]


class Part(TypedDict, total=False):
    """What of a package this process may use: `quota` in CPUs, `by` the files of the limits."""

    threads: int
    cores: int
    quota: float
    by: list[str]
