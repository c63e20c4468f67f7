"""Samples the GPUs of a Mac from the accelerators' PerformanceStatistics in the I/O registry.

No root is needed, unlike for powermetrics; which process uses a GPU, nothing tells. The keys are
the drivers' own: Apple silicon has no temperature, power or clock there, AMD's drivers have.
"""

from __future__ import annotations

from probe_apple import commands, ioreg
from probe_apple.scene import ACCELERATORS, PCI
from probe_apple.silicon import GPU
from probe_apple.sysctl import Sysctl
from probe_core.api import not_applicable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_core.api import Machine, NotApplicable, RawSample, SampleRequest

__all__ = ["Sampler"]

_STATISTICS = "PerformanceStatistics"
_BUSY = ("Device Utilization %", "GPU Activity(%)")
_USED = ("In use system memory", "vramUsedBytes", "inUseVidMemoryBytes")
_FREE = "vramFreeBytes"
_FIGURES = {"temperature_c": "Temperature(C)", "power_w": "Total Power(W)"}
_CLOCKS = {"sm": "Core Clock(MHz)", "memory": "Memory Clock(MHz)"}

_MAKERS = {"8086": "intel", "1002": "amd", "10de": "nv"}
"""PCI vendor → how the classes of its accelerators begin: AMDRadeonX6000_…, IntelAccelerator."""


class Sampler:
    """The GPUs of a Mac, between two rounds."""

    def __init__(self, machine: Machine, seconds: float) -> None:
        sysctl = Sysctl(machine)
        is_silicon = machine.arch == "aarch64" or sysctl.number("hw.optional.arm64") == 1
        self._machine = machine
        self._memory = sysctl.number("hw.memsize") if is_silicon else None
        self._ids = {"": GPU} if is_silicon else _by_maker(machine, seconds)

    def sample(self, request: SampleRequest) -> Iterator[RawSample] | NotApplicable:
        """Return the samples of a round."""
        if not self._ids:
            return not_applicable("no accelerator of this Mac can be told apart from the others")
        return self._samples(request)

    def _samples(self, request: SampleRequest) -> Iterator[RawSample]:
        wanted = {maker: i for maker, i in self._ids.items() if not request.skip(i)}
        for identity in wanted.values():
            request.touching(identity)
        answers = commands.ask(self._machine, (ACCELERATORS,), request.deadline_s * 0.8)
        entries = ioreg.entries(answers.output.get(ACCELERATORS))
        for maker, identity in wanted.items():
            entry = next((e for e in entries if _is_of(e, maker)), None)
            if entry is None:
                reason = answers.failed.get(ACCELERATORS, f"ioreg lists no {_STATISTICS} of it")
                yield {"device": identity, "status": "unavailable", "reason": reason}
            else:
                yield _sample(identity, entry[_STATISTICS], self._memory)


def _sample(identity: str, statistics: Mapping[str, Any], memory: int | None) -> RawSample:
    unknown = {"processes": "macOS tells of no process which GPU it uses"}
    sample: RawSample = {"device": identity, "unknown": unknown}
    busy = _first(statistics, *_BUSY)
    if busy is None:
        unknown["busy"] = f"{_STATISTICS} has no utilisation"
    else:
        sample["busy"] = busy / 100
    used, free = _first(statistics, *_USED), _first(statistics, _FREE)
    if used is not None:
        sample["memory"] = {"used": used}
        if memory is not None or free is not None:
            sample["memory"]["total"] = memory if memory is not None else used + (free or 0)
    for field, key in _FIGURES.items():
        value = _first(statistics, key)
        if value is None:
            unknown[field] = f"{_STATISTICS} has no {key!r}"
        else:
            sample[field] = value  # type: ignore[literal-required]
    clocks = {name: value for name, key in _CLOCKS.items() if (value := _first(statistics, key))}
    if clocks:
        sample["clocks_mhz"] = dict(clocks)
    else:
        unknown["clocks_mhz"] = f"{_STATISTICS} has no clock"
    return sample


def _first(statistics: Mapping[str, Any], *keys: str) -> int | None:
    numbers = (ioreg.number(statistics.get(key)) for key in keys)
    return next((number for number in numbers if number is not None and number >= 0), None)


def _is_of(entry: Mapping[str, Any], maker: str) -> bool:
    if not isinstance(entry.get(_STATISTICS), dict):
        return False
    return (ioreg.text(entry.get("IOClass")) or "").lower().startswith(maker)


def _by_maker(machine: Machine, seconds: float) -> dict[str, str]:
    """Return the id of each GPU of an Intel Mac by its maker; none of two by the same maker.

    An accelerator does not say at which address its GPU is.
    """
    answers = commands.ask(machine, (PCI,), seconds)
    by_maker: dict[str, list[str]] = {}
    for entry in ioreg.entries(answers.output.get(PCI)):
        ids, address = ioreg.pci_ids(entry), ioreg.address(entry)
        maker = _MAKERS.get(ids.get("id", "")[:4])
        if maker and address and ids.get("class", "").startswith("03"):
            by_maker.setdefault(maker, []).append(f"pci:{address}")
    return {maker: ids[0] for maker, ids in by_maker.items() if len(ids) == 1}
