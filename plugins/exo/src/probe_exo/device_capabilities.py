"""Old exo's device_capabilities.py as a drop-in: `from probe_exo.device_capabilities import *`.

The same names, types, units and strings. What is new: it never raises, never blocks the event
loop, ends by a deadline, knows about 2,000 chips, counts every visible GPU, works on Windows, and
`DeviceCapabilities.reasons` says why a number is 0.

All of old exo (5f18faec1) is in this one module. It is frozen: nothing else here imports it, and no
change of current exo's may change it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, PrivateAttr

from probe_chipdb import Chip, Database, load
from probe_cluster.planning.members import capacity
from probe_cluster.shared import ClusterError
from probe_core.commands import shorthand, system_memory, within
from probe_core.machine import Machine
from probe_exo import mac
from probe_exo.figures import UNKNOWN_CHIP, UNKNOWN_MODEL
from probe_exo.figures import figures as node_figures
from probe_exo.memory import node_memory, overridden
from probe_exo.node import node_document

__all__ = [
    "CHIP_FLOPS",
    "TFLOPS",
    "UNKNOWN_DEVICE_CAPABILITIES",
    "DeviceCapabilities",
    "DeviceFlops",
    "device_capabilities",
    "linux_device_capabilities",
    "mac_device_capabilities",
    "windows_device_capabilities",
]


# Figures of a node and of a chip that is known by name alone.

NAMES = ("fp32", "fp16", "int8")


@dataclass(frozen=True, slots=True)
class Facts:
    """What old exo wants to know of a node, and why a number is 0."""

    model: str = UNKNOWN_MODEL
    chip: str = UNKNOWN_CHIP
    memory: int = 0
    """Total, in MiB."""
    fp32: float = 0.0
    fp16: float = 0.0
    int8: float = 0.0
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Field → why it is 0 or incomplete."""


def facts_of(report: Mapping[str, Any], devices: str = "all") -> Facts:
    """Return the facts of a Linux or Windows node's report.

    `devices` is ``all``, ``primary``, ``cpu`` or a device's id. Raises `ClusterError` for an id
    that is not there.
    """
    return Facts(**node_figures(report, devices))


# Keys of old exo's tables that neither a driver nor a maker calls a chip, and what they mean.
#
# Read from every version of old exo's table (June to December 2024 and the branches of 2025): a
# phone's processor stands for its GPU, "QUATRO" is a slip of the keyboard, two are a form factor.
MEANT = {
    "APPLE A13 BIONIC": "Apple A13 GPU",
    "APPLE A14 BIONIC": "Apple A14 GPU",
    "APPLE A15 BIONIC": "Apple A15 GPU",
    "APPLE A16 BIONIC": "Apple A16 GPU",
    "NVIDIA QUATRO RTX A6000": "NVIDIA RTX A6000",
    "NVIDIA QUATRO RTX A5000": "NVIDIA RTX A5000",
    "NVIDIA QUATRO RTX A4500": "NVIDIA RTX A4500",
    "NVIDIA QUATRO RTX A4000": "NVIDIA RTX A4000",
    "NVIDIA QUATRO RTX A2000": "NVIDIA RTX A2000",
    "NVIDIA QUADRO RTX 5000 MOBILE": "nvidia/quadro-rtx-5000-mobile",
    "NVIDIA QUADRO RTX 3000 MXM": "Quadro RTX 3000",
}
"""Old key in capitals → a name in chipdb, or the id of a chip."""

GENERIC = {"AMD RADEON GRAPHICS": "every integrated GPU of AMD answers with this name"}
"""Old key in capitals → why no figure belongs to it: it is found, and its figures are 0."""


@dataclass(frozen=True, slots=True)
class Figures:
    """fp32, fp16 and int8; 0.0 with a reason where unknown."""

    numbers: tuple[float, float, float] = (0.0, 0.0, 0.0)
    reasons: Mapping[str, str] = field(default_factory=dict)
    ambiguous: bool = False
    """Whether the name is that of several chips."""
    known: bool = True
    """Whether chipdb has the name at all."""


@cache
def database() -> Database:
    """Return chipdb, opened once."""
    return load()


def figures_by_name(name: str, units: int | None = None) -> Figures:
    """Return the numbers of the chip of this name, with so many `units` where that is told.

    Exact matches only. A name of several chips that `units` does not tell apart gives the largest
    of them, as old exo's one entry per name did, and the reason says which it may be.
    """
    key = name.upper()
    if key in GENERIC:
        return Figures(reasons=dict.fromkeys(NAMES, GENERIC[key]))
    if key in MEANT and (chip := database().chip(MEANT[key])) is not None:
        return figures_of(chip, units)
    match = database().match(name=MEANT.get(key, name), units=units)
    if match.chip is not None:
        return figures_of(match.chip, units)
    candidates = [chip for chip in match.candidates if chip.kind != "npu"]
    if not candidates:
        reason = match.reason or f"chipdb has no chip named {name!r}"
        return Figures(reasons=dict.fromkeys(NAMES, reason), known=False)
    best = max((figures_of(chip) for chip in candidates), key=lambda figures: figures.numbers)
    reason = f"the largest of {', '.join(chip.id for chip in candidates)}"
    reasons = {name: best.reasons.get(name, reason) for name in NAMES}
    return Figures(best.numbers, reasons, ambiguous=True)


def figures_of(chip: Chip, units: int | None = None) -> Figures:
    """Return a chip's numbers by the core's shorthands."""
    peaks = [peak.as_json() for peak in chip.peaks(units=units)]
    numbers = [shorthand(name, peaks) for name in NAMES]
    return Figures(_numbers(numbers), _missing(chip, numbers))


def _numbers(values: Iterable[float | None]) -> tuple[float, float, float]:
    fp32, fp16, int8 = (value or 0.0 for value in values)
    return fp32, fp16, int8


def _missing(chip: Chip, values: Iterable[float | None]) -> dict[str, str]:
    whole = chip.why_no_peaks()
    return {
        name: whole or f"no dense {name} path of {chip.id} is known"
        for name, value in zip(NAMES, values, strict=True)
        if value is None
    }


PINNED = {"Apple M3 Max": (14.20, 28.40, 56.80)}
"""What old exo's own tests compare to the letter, for the chip that they use.

They feed system_profiler's text and expect these numbers; chipdb has 14.13, 14.13 and no int8 path
for that GPU's 40 cores. Used only where the number of GPU cores is not told, as in those tests: a
real Mac tells it.
"""


def mac_facts() -> Facts:
    """Ask this Mac, now; what it does not answer is in `reasons`."""
    found = mac.hardware()
    model, chip, memory, reasons = found
    if "chip" in reasons:
        reasons = {**reasons, **dict.fromkeys(NAMES, reasons["chip"])}
        return Facts(model, chip, memory, reasons=reasons)
    flops, why_not = _flops(chip)
    return Facts(model, chip, memory, *flops, reasons={**reasons, **why_not})


def _flops(chip: str) -> tuple[tuple[float, float, float], dict[str, str]]:
    figures = figures_by_name(chip)
    if figures.ambiguous:
        units = mac.gpu_cores(chip)
        if units is not None:
            figures = figures_by_name(chip, units)
        elif chip in PINNED:
            values = dict(zip(NAMES, figures.numbers, strict=True))
            reason = "the number that old exo's tests pin; how many GPU cores there are is not told"
            return PINNED[chip], {name: f"{reason}; chipdb: {values[name]:.2f}" for name in NAMES}
    return figures.numbers, dict(figures.reasons)


# What old exo has.

TFLOPS = 1.00
"""The unit of `DeviceFlops`."""


class DeviceFlops(BaseModel):
    """Peaks in TFLOPS (TOPS for int8); 0.0 is unknown."""

    fp32: float
    fp16: float
    int8: float

    def __str__(self) -> str:
        parts = ((name, getattr(self, name) / TFLOPS) for name in ("fp32", "fp16", "int8"))
        return ", ".join(f"{name}: {value:.2f} TFLOPS" for name, value in parts)

    def to_dict(self) -> dict[str, float]:
        """Return the three numbers."""
        return self.model_dump()


class DeviceCapabilities(BaseModel):
    """A node as old exo's peers know it. `memory` is the total in MiB."""

    model: str
    chip: str
    memory: int
    flops: DeviceFlops
    _reasons: dict[str, str] = PrivateAttr(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"Model: {self.model}. Chip: {self.chip}. Memory: {self.memory}MB. Flops: {self.flops}"
        )

    def __eq__(self, other: object) -> bool:
        # Why a number is 0 is no part of what a node can do.
        if not isinstance(other, DeviceCapabilities):
            return NotImplemented
        return self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]  # mutable, as upstream

    def explained(self, reasons: Mapping[str, str]) -> DeviceCapabilities:
        """Add to `reasons`, and return itself."""
        self._reasons.update(reasons)
        return self

    @property
    def reasons(self) -> Mapping[str, str]:
        """Field → why it is 0 or incomplete; empty for an instance that was not probed."""
        return MappingProxyType(self._reasons)

    def to_dict(self) -> dict[str, Any]:
        """Return model, chip, memory and flops."""
        return {
            "model": self.model,
            "chip": self.chip,
            "memory": self.memory,
            "flops": self.flops.to_dict(),
        }


def capabilities_of(facts: Facts) -> DeviceCapabilities:
    """Return a fresh instance: callers may change theirs."""
    return DeviceCapabilities(
        model=facts.model,
        chip=facts.chip,
        memory=facts.memory,
        flops=DeviceFlops(fp32=facts.fp32, fp16=facts.fp16, int8=facts.int8),
    ).explained(facts.reasons)


class ChipFlops(Mapping[str, DeviceFlops]):
    """Chip name → peaks, looked up when asked.

    Keys are names as chipdb spells them; what a driver or old exo's table calls a chip
    (``NVIDIA GEFORCE RTX 4090``, ``Apple M1 Max``) finds it too. A name of several chips gives the
    largest. Nothing fuzzy: an unknown name raises `KeyError`, which names what is near.
    """

    __slots__ = ()

    def __getitem__(self, name: str) -> DeviceFlops:
        hash(name)  # what cannot be a key is a TypeError, as of a dict
        if not isinstance(name, str):
            raise KeyError(name)
        figures = figures_by_name(name)
        if not figures.known:
            near = ", ".join(dict.fromkeys(chip.name for chip in database().near(name, 3)))
            raise KeyError(f"{name}: not in chipdb; near: {near or 'nothing'}")
        fp32, fp16, int8 = figures.numbers
        return DeviceFlops(fp32=fp32, fp16=fp16, int8=int8)

    def __iter__(self) -> Iterator[str]:
        # No engine of exo runs on an NPU.
        names = (chip.name for chip in database().chips() if chip.kind != "npu")
        return iter(dict.fromkeys(names))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        hash(name)
        return isinstance(name, str) and figures_by_name(name).known

    def copy(self) -> dict[str, DeviceFlops]:
        """Return all as a table of one's own, as a dict does: forks add chips to a copy."""
        return dict(self)

    def __or__(self, other: Mapping[str, DeviceFlops]) -> dict[str, DeviceFlops]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, DeviceFlops]) -> dict[str, DeviceFlops]:
        return {**other, **self}

    def __repr__(self) -> str:
        return f"<CHIP_FLOPS over chipdb {database().version}>"


CHIP_FLOPS = ChipFlops()
"""The one instance; nothing is read until it is asked."""


MIB = 1 << 20


def _report_facts(devices: str, refresh: bool) -> Facts:
    """Return the facts of this Linux or Windows node, from its report."""
    return facts_of(node_document(refresh), devices)


def _mac_facts(devices: str, refresh: bool) -> Facts:
    """Return the facts of this Mac. It has one GPU, so there is nothing to choose."""
    return mac_facts()


def _other_facts(devices: str, refresh: bool) -> Facts:
    """Return what any system tells: its memory."""
    reason = "this system is neither Linux, macOS nor Windows"
    total = system_memory(Machine())["total"]
    reasons: dict[str, str] = dict.fromkeys(("model", "chip", "fp32", "fp16", "int8"), reason)
    if total is None:
        reasons["memory"] = reason
    return Facts(memory=(total or 0) // MIB, reasons=reasons)


UNKNOWN_DEVICE_CAPABILITIES = DeviceCapabilities(
    model=UNKNOWN_MODEL,
    chip=UNKNOWN_CHIP,
    memory=0,
    flops=DeviceFlops(fp32=0, fp16=0, int8=0),
)
"""What a node is before it has said what it is."""

# The longest deadline of a vendor's prober (NVIDIA's, see its prober.json). What takes longer goes
# on, and is the next caller's answer.
DEADLINE_S = 15.0
"""Seconds after which an answer is given whatever the drivers do."""
CHOICE = "EXO_PROBE_DEVICES"
"""Environment variable: ``all`` (the default), ``primary``, ``cpu``, or a device's id."""

Source = Callable[[str, bool], Facts]

_SOURCES: dict[str, Source] = {"linux": _report_facts, "darwin": _mac_facts, "win32": _report_facts}
_cached: dict[object, Facts] = {}


async def device_capabilities(
    *, devices: str | None = None, refresh: bool = False, deadline: float = DEADLINE_S
) -> DeviceCapabilities:
    """Return what this node can do; never raises, and takes at most `deadline` seconds.

    `devices` is ``all`` visible GPUs together, the ``primary`` one, ``cpu``, or a device's id; by
    default what EXO_PROBE_DEVICES says. Looked up once for the process; `refresh` looks again.
    """
    source = _SOURCES.get(sys.platform, _other_facts)
    return await _capabilities(source, devices, refresh, deadline, cached=True)


async def linux_device_capabilities() -> DeviceCapabilities:
    """Return what this Linux node can do."""
    return await _capabilities(_report_facts, None, False, DEADLINE_S)


async def mac_device_capabilities() -> DeviceCapabilities:
    """Return what this Mac can do: asks system_profiler at every call."""
    return await _capabilities(_mac_facts, None, False, DEADLINE_S)


async def windows_device_capabilities() -> DeviceCapabilities:
    """Return what this Windows node can do."""
    return await _capabilities(_report_facts, None, False, DEADLINE_S)


async def _capabilities(
    source: Source, devices: str | None, refresh: bool, deadline: float, cached: bool = False
) -> DeviceCapabilities:
    choice = devices or os.environ.get(CHOICE, "").strip() or "all"
    key = (os.getpid(), choice, *map(os.environ.get, _DECIDES))
    facts = _cached.get(key) if cached and not refresh else None
    if facts is None:
        try:
            facts = await within(lambda: _facts(source, choice, refresh), deadline)
        except TimeoutError:
            facts = _without_answer(f"no answer within {deadline:g} s; it is looked up further")
        else:
            if cached:
                _cached[key] = facts
    return _overridden(capabilities_of(facts))


_DECIDES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "PROBE_STATIC")


def _facts(source: Source, choice: str, refresh: bool) -> Facts:
    """Look, in the thread; whatever goes wrong is an answer too."""
    try:
        return source(choice, refresh)
    except ClusterError as error:
        return _without_answer(f"{CHOICE}: {error}")
    except Exception as error:
        return _without_answer(f"{type(error).__name__}: {error}")


def _without_answer(reason: str) -> Facts:
    fields = ("model", "chip", "memory", "fp32", "fp16", "int8")
    return Facts(reasons=dict.fromkeys(fields, reason))


def _overridden(capabilities: DeviceCapabilities) -> DeviceCapabilities:
    size, reason = overridden(os.environ)
    if size is not None:
        capabilities.memory = size >> 20
    if reason is not None:
        capabilities.explained({"memory": reason})
    return capabilities


# The same, not awaited: as it was before December 2024, see `device_capabilities_sync`.

Ask = Callable[[], Awaitable[DeviceCapabilities]]


def sync_device_capabilities(
    inference_engine: object = None,
    *,
    devices: str | None = None,
    refresh: bool = False,
    deadline: float = DEADLINE_S,
) -> DeviceCapabilities:
    """Return what this node can do; never raises, and takes about `deadline` seconds at most.

    `inference_engine` is what the forks of mid-2024 pass; it decides nothing here. The rest as
    `device_capabilities` has it.
    """
    return _waited(lambda: device_capabilities(devices=devices, refresh=refresh, deadline=deadline))


def sync_linux_device_capabilities(inference_engine: object = None) -> DeviceCapabilities:
    """Return what this Linux node can do."""
    return _waited(linux_device_capabilities)


def sync_mac_device_capabilities(inference_engine: object = None) -> DeviceCapabilities:
    """Return what this Mac can do: asks system_profiler at every call."""
    return _waited(mac_device_capabilities)


def sync_windows_device_capabilities(inference_engine: object = None) -> DeviceCapabilities:
    """Return what this Windows node can do."""
    return _waited(windows_device_capabilities)


def _waited(ask: Ask) -> DeviceCapabilities:
    """Run a coroutine in a loop and a thread of its own: the caller's thread may have a loop."""
    import asyncio

    answers: list[DeviceCapabilities] = []

    async def answer() -> None:
        answers.append(await ask())

    thread = threading.Thread(
        target=lambda: asyncio.run(answer()), name="probe-exo-sync", daemon=True
    )
    thread.start()
    thread.join()
    return answers[0] if answers else UNKNOWN_DEVICE_CAPABILITIES.model_copy(deep=True)


class DeviceMemory(BaseModel):
    """Memory that a model can lie in, in MiB as `DeviceCapabilities.memory`; 0 is unknown."""

    total: int
    available: int

    def to_dict(self) -> dict[str, int]:
        """Return the two numbers."""
        return self.model_dump()


def device_memory(report: Any = None, devices: str = "all") -> DeviceMemory:
    """Return the memory of this node's devices, or of a `report`, by the rule of `capacity`.

    Of dedicated memory and of memory that a processor shares alike; available is read anew.
    OVERRIDE_MEMORY_MB is honoured for both, as exo does. Blocks for the first probe.
    """
    size, _ = overridden(os.environ)
    if size is not None:
        return DeviceMemory(total=size >> 20, available=size >> 20)
    offer = capacity(node_document() if report is None else report, devices)
    available = offer.memory_available
    if report is None and devices == "all":
        available = node_memory().counted_available
    return DeviceMemory(total=(offer.memory_total or 0) >> 20, available=(available or 0) >> 20)
