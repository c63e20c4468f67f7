"""`fp32`, `fp16` and `int8` of a device, by one declared convention.

All dense, at the device's own clock label (boost for known chips). `fp32` is the vector path.
`fp16` is the fastest path that accumulates in fp32; a chip without one gives its fp16 vector path.
`int8` is the fastest path.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["SHORTHANDS", "add_shorthands", "shorthand"]

SHORTHANDS = ("fp32", "fp16", "int8")


def add_shorthands(device: dict[str, Any]) -> None:
    """Set the three numbers (TFLOPS, TOPS), or None with the reason in `unknown`."""
    peaks = device.get("peaks") or []
    for name in SHORTHANDS:
        device[name] = shorthand(name, peaks)
        if device[name] is None:
            device["unknown"].setdefault(name, _why(name, device))


def shorthand(name: str, peaks: Iterable[dict[str, Any]]) -> float | None:
    """Return one of `SHORTHANDS` from a device's peaks; None when no peak fits the convention."""
    dense = [p for p in peaks if p["dtype"] == name and p["sparsity"] == "dense"]
    if name == "fp32":
        fitting = [p for p in dense if p["path"] == "vector" and "variant" not in p]
    elif name == "fp16":
        fitting = [p for p in dense if p["accumulate"] == "fp32"] or [
            p for p in dense if p["path"] == "vector"
        ]
    else:
        fitting = dense
    return max((p["tflops"] for p in fitting), default=None)


def _why(name: str, device: dict[str, Any]) -> str:
    if device.get("peaks"):
        return f"no dense {name} path of this chip is known"
    return str(device["unknown"].get("peaks", "its peaks are unknown"))
