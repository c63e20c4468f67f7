"""Types of the plain data that the steps exchange. For type checkers alone: nobody imports this."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Required, TypedDict


class LibraryDoc(TypedDict, total=False):
    """What one file has code for; a key is left out where there is nothing.

    `cuda` and `hip` are lists of [targets, count]: how many containers (bundles) of the file have
    exactly these targets. `unread` counts compressed bundles that nothing here could decode.
    `intel` is "spirv" (compiled when it is loaded) or "native" (built for named chips), `xe` the
    IP versions of those chips and `spirv` whether others can compile it, too. `packs` is
    whether the code lies in kernel packs beside it, `vulkan` whether it needs Vulkan's loader.
    `problem` says why it could not all be read.
    """

    format: str
    machines: list[str]
    cuda: list[tuple[list[str], int]]
    relocatable: bool
    hip: list[tuple[list[str], int]]
    unread: int
    packs: bool
    intel: str
    xe: list[str]
    spirv: bool
    metal: bool
    vulkan: bool
    needed: list[str]
    problem: str


class DistributionDoc(TypedDict):
    """One installed distribution, and what its files have code for.

    `path` is its metadata, `site` the folder that its files' paths start from. `files` maps the
    path of each library with code for a GPU, or that could not be read, to its contents. `gfx`
    are the AMD processors that names of other files carry (rocBLAS's kernels). `missing` are
    files of its own list that are not there. `build` is the build's tag ("cu128", "cpu"), as far
    as its version or its build string has one; `text` is what its own text says of its build.
    """

    name: str
    version: str
    build: str | None
    path: str
    site: str
    files: dict[str, LibraryDoc]
    gfx: list[str]
    missing: list[str]
    outside: list[str]
    text: dict[str, str]
    requires: list[str]
    note: NotRequired[str]


Verdict = Literal[
    "native",
    "jit-only",
    "lacks-device",
    "needs-newer-driver",
    "cpu-build",
    "other-vendor",
    "compiles",
    "unknown",
]


class VerdictDoc(TypedDict):
    """Whether one distribution runs on one device.

    `verdict`: "native" has machine code for it, "jit-only" code that the driver compiles first,
    "compiles" makes its code at run time. `library` is the file that decided, `has` what it has
    code for, `needs` what this device or this distribution would need, `why` one sentence.
    """

    wheel: str
    device: str
    verdict: Verdict
    library: str | None
    has: str
    needs: str
    why: str


class ImagesDoc(TypedDict):
    """`data/images.toml`: what containers get of their host, and what goes with its drivers."""

    mounts: dict[str, Any]
    brands: dict[str, Any]
    pairing: dict[str, Any]
    intel: dict[str, Any]
    toolkits: dict[str, str]
    levels: dict[str, list[str]]
    bases: dict[str, Any]
    others: dict[str, str]
    backends: dict[str, Any]
    watchers: dict[str, Any]
    spared: dict[str, Any]
    interfaces: dict[str, Any]
    last: dict[str, Any]


class FrameworkDoc(TypedDict, total=False):
    """What is known of a framework's builds: an entry of data/frameworks.toml, explained there."""

    title: Required[str]
    members: Required[list[str]]
    builds: Required[list[str]]
    source: Required[str]
    main: list[str]
    parts: list[str]
    elsewhere: list[str]
    cpu: list[str]
    plain: str
    compiles: list[str]
    cpu_first: bool
    falls_back: bool
    skips: bool
    opens: list[str]
    compiler: str
    flags: list[str]
    leads: bool
    needed: bool
    needs_torch: bool
    follows: str
    published: bool
    least: int
    instead: str
    fix: dict[str, str]


class BuildDoc(TypedDict):
    """One build of PyTorch for NVIDIA's GPUs: a row of data/torch.toml, explained there."""

    backend: str
    toolkit: str
    arch: str
    targets: list[int]
    until: str
    source: str


class RocmDoc(TypedDict):
    """One build of PyTorch for AMD's GPUs."""

    backend: str
    targets: list[str]
    source: str


class XpuDoc(TypedDict):
    """The build of PyTorch for Intel's GPUs."""

    backend: str
    families: list[str]
    source: str


class UvDoc(TypedDict):
    """What uv accepts and what it chooses by itself."""

    version: str
    backends: list[str]
    amd: list[str]
    linux: list[list[str]]
    windows: list[list[str]]
    source: str


class TorchDoc(TypedDict):
    """data/torch.toml."""

    date: str
    cuda: list[BuildDoc]
    rocm: list[RocmDoc]
    xpu: XpuDoc
    uv: UvDoc


class MajorsDoc(TypedDict):
    """The first driver of each major version of CUDA."""

    source: str
    linux: dict[str, str]
    windows: dict[str, str]


class PtxDoc(TypedDict):
    """Which driver compiles which PTX."""

    source: str
    rows: list[list[str]]


class DriversDoc(TypedDict):
    """data/drivers.toml; beside processors, the last three tables have their `source`."""

    majors: MajorsDoc
    ptx: PtxDoc
    gfx: dict[str, str]
    generic: dict[str, list[str] | str]
    xe: dict[str, list[str] | str]
    xe_runs: dict[str, list[str] | str]
    override: dict[str, list[str] | str]
