"""Peaks of the part of a processor that this process may use, beside those of the whole."""

from __future__ import annotations

from probe_core.resolve.processors import summed
from probe_core.resolve.shorthands import SHORTHANDS, shorthand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc, Json, PeakDoc
    from probe_core.resolve.processors import Group

__all__ = ["resolve"]


def resolve(device: DeviceDoc, groups: Sequence[Group]) -> None:
    """Set `allowed.fp32`, `.fp16` and `.int8` (TFLOPS, TOPS) in place.

    A quota of CPU time counts for the fastest of the allowed cores.
    """
    allowed = device.get("allowed")
    if not allowed:
        return
    remaining = _number(allowed.get("quota"))
    parts: list[list[PeakDoc]] = []
    for group in sorted(groups, key=_rate_of_a_core, reverse=True):
        cores = _cores(group)
        if cores is None:
            return
        held = _allowed_cores(group, cores, allowed.get("cores"))
        if remaining is not None:
            held = min(held, remaining)
            remaining -= held
        parts.append([_scaled(peak, held / cores) for peak in group.peaks])
    peaks = summed(parts)
    for name in SHORTHANDS:
        figure = shorthand(name, peaks)
        if figure is not None:
            allowed[name] = round(figure, 4)
            device["sources"][f"allowed.{name}"] = "chipdb"


def _scaled(peak: PeakDoc, factor: float) -> PeakDoc:
    part = peak.copy()
    part["tflops"] = peak["tflops"] * factor
    return part


def _rate_of_a_core(group: Group) -> float:
    fp32, cores = shorthand("fp32", group.peaks), _cores(group)
    return fp32 / cores if fp32 and cores else 0.0


def _cores(group: Group) -> float | None:
    return _number(group.cluster.get("cores"))


def _allowed_cores(group: Group, cores: float, of_package: Json) -> float:
    """Return the allowed cores of one kind; of a processor of one kind those of the package."""
    own = _number(group.cluster.get("allowed"))
    if own is None:
        own = _number(of_package)
    return cores if own is None else min(own, cores)


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) else None
