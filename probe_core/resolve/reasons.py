"""A value has its source, and a null its reason, field by field."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from probe_core.model.document import DeviceDoc, PeakDoc

    TextField = Literal["name", "arch", "vendor"]
    CountField = Literal["units", "cores"]
    Shorthand = Literal["fp32", "fp16", "int8"]


EXPLAINED = {
    "name": "no prober names it, and its chip is not certain",
    "vendor": "no prober reports who makes it",
    "arch": "its chip is not certain",
    "units": "no prober counted them, and chipdb has no count",
    "bandwidth": "no prober reports it, and chipdb has none of its chip",
}
"""Fields that have a reason in `unknown` whenever they are null, and the reason of last resort."""

DISPLAY = "a display adapter that cannot compute"


def explain_nulls(device: DeviceDoc) -> None:
    """Add the reason for each field of `EXPLAINED` that is unknown and has none yet, in place."""
    display = device["kind"] == "display"
    for field, reason in EXPLAINED.items():
        if device.get(field) is None:
            device["unknown"].setdefault(field, DISPLAY if display else reason)


def fill_text(device: DeviceDoc, field: TextField, value: str | None) -> None:
    """Set a field to what chipdb has, where no prober reported it."""
    if value and not device.get(field):
        device[field] = value
        from_chipdb(device, field)


def fill_count(device: DeviceDoc, field: CountField, value: int | None) -> None:
    """Set a count to what chipdb has, where no prober reported it."""
    if value is not None and device.get(field) is None:
        device[field] = value
        from_chipdb(device, field)


def from_chipdb(device: DeviceDoc, field: str) -> None:
    """Note that the value of a field comes from chipdb."""
    device["sources"][field] = "chipdb"
    device["unknown"].pop(field, None)


# `fp32`, `fp16` and `int8` of a device, by one declared convention.
#
# All dense, at the device's own clock label (boost for known chips). `fp32` is the vector path.
# `fp16` is the fastest path that accumulates in fp32; a chip without one gives its fp16 vector
# path.
# `int8` is the fastest path.

SHORTHANDS: tuple[Shorthand, ...] = ("fp32", "fp16", "int8")


def add_shorthands(device: DeviceDoc) -> None:
    """Set those of the three numbers (TFLOPS, TOPS) that are missing, or the reason in `unknown`.

    A device has them already where an equal one before it had the same peaks.
    """
    peaks = device.get("peaks") or []
    for name in SHORTHANDS:
        if device.get(name) is None:
            device[name] = shorthand(name, peaks)
        if device[name] is None:
            device["unknown"].setdefault(name, _missing(name, device))


def shorthand(name: str, peaks: Iterable[PeakDoc]) -> float | None:
    """Return one of `SHORTHANDS` from a device's peaks; None when no peak fits the convention."""
    dense = [p for p in peaks if p["dtype"] == name and p["sparsity"] == "dense"]
    return max((peak["tflops"] for peak in _fitting(name, dense)), default=None)


def _fitting(name: str, dense: list[PeakDoc]) -> list[PeakDoc]:
    vector = [peak for peak in dense if peak["path"] == "vector"]
    if name == "fp32":
        # A variant is a way to issue the same path: RDNA 3 counts dual issue in its own.
        return [peak for peak in vector if "variant" not in peak]
    if name == "fp16":
        return [peak for peak in dense if peak["accumulate"] == "fp32"] or vector
    return dense


def _missing(name: Shorthand, device: DeviceDoc) -> str:
    if device.get("peaks"):
        return f"no dense {name} path of this chip is known"
    return device["unknown"].get("peaks", "its peaks are unknown")
