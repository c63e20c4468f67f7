"""How devices are connected: links that bypass PCIe, and how far accelerators are from each other.

NVLink and xGMI lead through a switch or from device to device; distances are in the words of
`nvidia-smi topo -m`.
"""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import bandwidth
from probe_core.wording import counted
from probe_report.figures import UNKNOWN, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc, LinkDoc
    from probe_report.figures import Names


_NOUNS = {"nvlink": "NVLink", "xgmi": "xGMI"}

_SHOWN_PAIRS = 8


class Fabric(NamedTuple):
    """One kind of link: its title, what each device has of it, and the ids that have it."""

    title: str
    note: str
    ids: frozenset[str]


def fabrics_of(devices: Sequence[DeviceDoc], names: Names) -> tuple[Fabric, ...]:
    """Return the fabrics between the devices, one for each kind of link."""
    kinds = dict.fromkeys(link["kind"] for device in devices for link in _links(device))
    return tuple(_fabric(kind, devices, names) for kind in list(kinds)[:4])


def _links(device: DeviceDoc) -> list[LinkDoc]:
    return [link for link in device["links"] if link["kind"] != "pcie"]


def _fabric(kind: str, devices: Sequence[DeviceDoc], names: Names) -> Fabric:
    members = [d for d in devices if any(link["kind"] == kind for link in _links(d))]
    ids = frozenset(device["id"] for device in members)
    noun = _NOUNS.get(kind, cut(kind, 24))
    own = [[link for link in _links(device) if link["kind"] == kind] for device in members]
    if any(link.get("to") == "switch" for links in own for link in links):
        return Fabric(f"{noun} through a switch", _each(own), ids)
    pairs = _pairs(kind, members)
    if len(members) > 2 and len(pairs) == len(members) * (len(members) - 1) // 2:
        return Fabric(f"{noun}, all to all", _each(own), ids)
    shown = [f"{names.of(first)} ↔ {names.of(second)}" for first, second in pairs[:_SHOWN_PAIRS]]
    beyond = len(pairs) - _SHOWN_PAIRS
    text = ", ".join([*shown, *([f"and {beyond} more"] if beyond > 0 else [])])
    return Fabric(f"{noun}: {text}" if text else noun, _each(own), ids)


def _pairs(kind: str, devices: Sequence[DeviceDoc]) -> list[tuple[str, str]]:
    """Return the pairs of devices that are linked, each once, in the order of the report."""
    ids = {device["id"]: place for place, device in enumerate(devices)}
    linked = {
        (min(ids[device["id"]], ids[peer]), max(ids[device["id"]], ids[peer]))
        for device in devices
        for link in _links(device)
        if link["kind"] == kind and (peer := link.get("peer")) in ids
    }
    order = list(ids)
    return [(order[first], order[second]) for first, second in sorted(linked)]


def _each(own: Sequence[Sequence[LinkDoc]]) -> str:
    """Return ``18 links each · 450 GB/s each way``; less where the devices differ."""
    counts = {sum(link.get("count") or 1 for link in links) for links in own}
    rates = {sum(link.get("bandwidth") or 0 for link in links) for links in own}
    parts = [f"{counted(counts.pop(), 'link')} each"] if len(counts) == 1 else []
    if len(rates) == 1 and (rate := rates.pop()):
        parts.append(f"{bandwidth(rate)} each way")
    return " · ".join(parts)


def lanes_between(first: DeviceDoc, second: DeviceDoc) -> tuple[str, int] | None:
    """Return the kind of the links between two devices and how many there are; None without.

    Through a switch each reaches the other with all of its links.
    """
    for kind in _NOUNS:
        direct = sum(
            link.get("count") or 1
            for link in _links(first)
            if link["kind"] == kind and link.get("peer") == second["id"]
        )
        switched = min(_to_switches(first, kind), _to_switches(second, kind))
        if direct or switched:
            return kind, direct or switched
    return None


def _to_switches(device: DeviceDoc, kind: str) -> int:
    return sum(
        link.get("count") or 1
        for link in _links(device)
        if link["kind"] == kind and link.get("to") == "switch"
    )


_MOST_IN_MATRIX = 16
"""Devices of the matrix: a page of 1,200 pixels has room for no more columns."""

_MEANINGS = {
    "NV": "NV18: 18 NVLinks",
    "XGMI": "XGMI1: one xGMI link",
    "PIX": "PIX: one PCIe switch",
    "PXB": "PXB: several PCIe switches",
    "PHB": "PHB: the host bridge of a CPU",
    "NODE": "NODE: within a NUMA node",
    "SYS": "SYS: between NUMA nodes",
    UNKNOWN: f"{UNKNOWN}: not known",
}


class Distances(NamedTuple):
    """A matrix: `labels` of rows and columns, the words of each row, what they mean.

    `hidden` counts the devices that are not in it.
    """

    labels: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    meanings: str
    hidden: int


def distances_of(devices: Sequence[DeviceDoc], names: Names) -> Distances | None:
    """Return the matrix of at least two devices; None where nothing of it is known."""
    shown = devices[:_MOST_IN_MATRIX]
    rows = tuple(tuple(distance(row, column) for column in shown) for row in shown)
    texts = dict.fromkeys(text for row in rows for text in row if text != "X")
    if not texts or set(texts) == {UNKNOWN}:
        return None
    stems = {text.rstrip("0123456789") for text in texts}
    return Distances(
        labels=tuple(names.label(device) for device in shown),
        rows=rows,
        meanings=". ".join(text for stem, text in _MEANINGS.items() if stem in stems) + ".",
        hidden=len(devices) - len(shown),
    )


def distance(first: DeviceDoc, second: DeviceDoc) -> str:
    """Return what data between two devices crosses: ``NV18``, ``PIX``, ``SYS`` … or a dash."""
    if first["id"] == second["id"]:
        return "X"
    if (lanes := lanes_between(first, second)) is not None:
        kind, count = lanes
        return f"{'NV' if kind == 'nvlink' else 'XGMI'}{count}"
    return _over_pcie(first, second) or _over_numa(first, second)


def _over_pcie(first: DeviceDoc, second: DeviceDoc) -> str:
    """Return the word for two devices whose bridges are known; "" where NUMA nodes decide."""
    chains = [list(reversed(device.get("bridges") or ())) for device in (first, second)]
    if not all(chains):
        return ""
    shared = sum(1 for pair in zip(*chains, strict=False) if len({*pair}) == 1)
    if shared:
        # Below a switch's upstream port each device has a port of that switch, and no more.
        depth = max(len(chain) for chain in chains) - shared
        return "PIX" if depth <= 1 else "PXB"
    buses = {chain[0].rpartition(":")[0] for chain in chains}
    return "PHB" if len(buses) == 1 else ""


def _over_numa(first: DeviceDoc, second: DeviceDoc) -> str:
    nodes = first.get("numa_node"), second.get("numa_node")
    if None in nodes:
        return UNKNOWN
    return "NODE" if nodes[0] == nodes[1] else "SYS"
