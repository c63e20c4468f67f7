"""One device of the picture: its state, its memory as a bar, its link and its parts."""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import size
from probe_report.figures import cut, percent
from probe_report.groups import Names, has_own_memory, model_of, style_of, word_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc, LinkDoc

__all__ = ["Card", "card_of", "used_of"]

_MOST_PARTS = 8

_BUSY = 85.0
"""Percent of the memory from which a bar is marked: a further job may find no room there."""


class Card(NamedTuple):
    """One device: `used` is the bar in percent, None where it is hatched or there is none."""

    label: str
    status: str
    style: str
    name: str
    memory: str
    used: float | None
    busy: bool
    has_bar: bool
    link: str
    address: str
    linked: bool
    parts: tuple[str, ...]


def card_of(device: DeviceDoc, names: Names, parts: Sequence[DeviceDoc], *, linked: bool) -> Card:
    """Return the card of a device; `linked` is whether a direct link leads to it."""
    memory, status = device["memory"], word_of(device)
    total, used = memory["total"], used_of(device)
    share = percent(used, total)
    return Card(
        label=names.label(device),
        status=status or "state not known",
        style=style_of(status),
        name=model_of(device),
        memory=_memory(total, used, memory["kind"]),
        used=share,
        busy=share is not None and share > _BUSY,
        has_bar=has_own_memory(device),
        link=_link(device["links"]),
        address=names.address(device["id"]),
        linked=linked,
        parts=_parts(parts),
    )


def _parts(parts: Sequence[DeviceDoc]) -> tuple[str, ...]:
    shown = tuple(
        cut(f"{part.get('profile') or 'part'} · {size(part['memory']['total'])}", 40)
        for part in parts[:_MOST_PARTS]
    )
    beyond = len(parts) - _MOST_PARTS
    return (*shown, f"{beyond} more") if beyond > 0 else shown


def used_of(device: DeviceDoc) -> int | None:
    """Return the bytes of memory in use: told, or what is left of the total without the free."""
    memory = device["memory"]
    if memory.get("used") is not None:
        return memory["used"]
    if memory["kind"] != "dedicated" or memory["total"] is None or memory["free"] is None:
        return None
    return max(0, memory["total"] - memory["free"])


def _memory(total: int | None, used: int | None, kind: str | None) -> str:
    if kind in ("shared", "unified"):
        return "shared with the system"
    if total is None:
        return "memory not known"
    if used is None:
        return f"{size(total)}, use not known"
    amount, _, unit = size(used).partition(" ")
    same = size(total).endswith(f" {unit}")
    return f"{amount} of {size(total)}" if same else f"{size(used)} of {size(total)}"


def _link(links: Sequence[LinkDoc]) -> str:
    """Return ``PCIe 5 ×16``, with what the slot could do where it does less."""
    for link in links:
        width, generation = link.get("width"), link.get("generation")
        if link["kind"] == "pcie" and width and generation:
            most = link.get("max_width")
            less = f" of ×{most}" if most and most > width else ""
            return f"PCIe {generation} ×{width}{less}"
    return ""
