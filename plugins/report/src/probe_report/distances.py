"""How far the accelerators are from each other, in the words of `nvidia-smi topo -m`."""

from __future__ import annotations

from typing import NamedTuple

from probe_report.fabric import lanes_between
from probe_report.figures import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc
    from probe_report.groups import Names

__all__ = ["Distances", "distance", "distances_of"]

_MOST = 16
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
    shown = devices[:_MOST]
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
