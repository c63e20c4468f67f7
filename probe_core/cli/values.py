"""The values of a report as people read them: GiB, GB/s, ``PCIe gen 5 x16``; never JSON."""

from __future__ import annotations

from probe_core.commands import text
from probe_core.model.fields import FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.model.document import DeviceDoc

__all__ = ["readable", "value_at"]

_BY_UNIT: dict[str, Callable[[float], str]] = {
    "bytes": text.size,
    "bytes per second": text.bandwidth,
    "MHz": lambda number: f"{number:g} MHz",
    "TFLOPS": lambda number: f"{text.rate(number)} TFLOPS",
    "TOPS": lambda number: f"{text.rate(number)} TOPS",
    "bits": lambda number: f"{number:g} bits",
    "watts": lambda number: f"{number:g} W",
}


def value_at(device: DeviceDoc, path: str) -> object:
    """Return the value at a dotted path of a device; None where nothing is there."""
    value: object = device
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def readable(path: str, value: object) -> str:
    """Return the value of a device's field in its unit; ``unknown`` for None."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {readable(f'{path}.{name}', v)}" for name, v in value.items())
    if isinstance(value, list):
        if path == "links":
            return "; ".join(map(_link, value))
        return ", ".join(readable(path, item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        formatted = _BY_UNIT.get(_unit(path))
        plain = str(value) if isinstance(value, int) else f"{value:g}"
        return formatted(value) if formatted is not None else plain
    return "unknown" if value is None else str(value)


def _unit(path: str) -> str:
    """Return the unit of a field; a table's without fields (memory.parts) is the table's own."""
    name, *others = path.split(".")
    field = FIELDS.get(name)
    for part in others:
        if field is None or field.fields is None or part not in field.fields:
            break
        field = field.fields[part]
    return field.unit if field is not None else ""


def _link(link: object) -> str:
    """Return one link: ``PCIe gen 5 x16 (at most gen 5 x16)``, ``nvlink to 43:00.0, 50 GB/s``."""
    if not isinstance(link, dict):
        return str(link)
    peer = link.get("peer") or link.get("to")
    count = link.get("count")
    times = f"{count} × " if isinstance(count, int) and count > 1 else ""
    shown = times + ("PCIe" if link.get("kind") == "pcie" else str(link.get("kind")))
    shown += f" to {peer}" if peer else ""
    if link.get("generation") and link.get("width"):
        shown += f" gen {link['generation']} x{link['width']}"
    if isinstance(link.get("bandwidth"), int | float):
        shown += f", {text.bandwidth(link['bandwidth'])}"
    if link.get("max_width") and link.get("max_gts"):
        shown += f" (at most x{link['max_width']} at {link['max_gts']:g} GT/s)"
    return shown
