"""A device's name as the table shows it: its model whole, without what every name repeats."""

from __future__ import annotations

from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc

__all__ = ["cores", "short_name", "title"]

_MARKS = ("(R)", "(r)", "(TM)", "(tm)", "®", "™")
_GRAPHICS = (" w/ ", " with Radeon ")
"""What AMD writes between a processor's name and that of its graphics."""


def title(device: DeviceDoc, parent: DeviceDoc | None = None) -> str:
    """Return a device's name for a row; below its `parent` only what distinguishes it."""
    name = short_name(device)
    if parent is not None and (parent["name"] or "\0") in name:
        name = name.replace(parent["name"] or "", "").strip() or _part(device)
    return name


def _part(device: DeviceDoc) -> str:
    """Return a word for a part that has its parent's name: the partition of an MI300."""
    return f"partition {device['id'].rpartition('/')[2]}" if "/" in device["id"] else "partition"


def short_name(device: DeviceDoc) -> str:
    """Return the name without trademarks, a generation, a clock, core counts and graphics.

    That is ``Intel Core i9-13900K`` of ``13th Gen Intel(R) Core(TM) i9-13900K``. A nameless device
    is described by what is known of it.
    """
    name = device["name"]
    if not name:
        return nameless(device)
    for mark in _MARKS:
        name = name.replace(mark, " ")
    if device["kind"] == "cpu":
        name = _processor(name)
    return " ".join(name.split()) or device["name"] or ""


def _processor(name: str) -> str:
    name = name.partition(" @ ")[0]
    for graphics in _GRAPHICS:
        name = name.partition(graphics)[0]
    words = name.split()
    if words[1:2] == ["Gen"] and words[0][:1].isdigit():
        words = words[2:]
    if words[-1:] == ["Processor"] and "".join(words[-2:-1]).endswith("-Core"):
        words = words[:-2]
    return " ".join(word for word in words if word != "CPU")


def nameless(device: DeviceDoc) -> str:
    """Return what is known of a device without a name."""
    kind = " ".join(filter(None, [device["vendor"], device["kind"]]))
    if device["kind"] == "display":
        return f"{kind} adapter, cannot compute"
    candidates = [chip.rpartition("/")[2] for chip in device["chip"]["candidates"]]
    if len(candidates) > 3:
        return f"{kind}, one of {len(candidates)} chips"
    return " or ".join(candidates) or f"unknown {kind}"


def cores(device: DeviceDoc, *, each: bool = False) -> str:
    """Return a processor's cores, and what this process may use of it: `` (8 cores, 6 allowed)``.

    Empty for other devices, and where the count is unknown.
    """
    count = device.get("units")
    if device["kind"] != "cpu" or not count:
        return ""
    number = f"{counted(count, 'core')} each" if each else counted(count, "core")
    return f" ({', '.join([number, *_allowed(device)])})"


def _allowed(device: DeviceDoc) -> list[str]:
    """Return what this process may use of a CPU, where that is less than the whole."""
    part = device.get("allowed") or {}
    allowed, quota = part.get("cores", part.get("threads")), part.get("quota")
    notes = []
    if allowed is not None and allowed != device.get("units"):
        notes.append(f"{allowed} allowed")
    if quota is not None:
        notes.append(f"{quota} CPUs of time")
    return notes
