"""Old exo's device_capabilities.py as a drop-in: `from probe_exo.device_capabilities import *`.

The same names, types, units and strings. What is new: it never raises, never blocks the event
loop, ends by a deadline, knows about 2,000 chips, counts every visible GPU, works on Windows, and
`DeviceCapabilities.reasons` says why a number is 0.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, PrivateAttr

from probe_cluster.shared import ClusterError
from probe_core.commands import system_memory, within
from probe_core.machine import Machine
from probe_exo import mac
from probe_exo.facts import Facts, database, facts_of, figures_by_name
from probe_exo.figures import UNKNOWN_CHIP, UNKNOWN_MODEL
from probe_exo.memory import overridden
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
    return mac.mac_facts()


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
