"""How devices are connected: links that bypass PCIe, and how far accelerators are from each other.

NVLink and xGMI lead through a switch or from device to device; distances are in the words of
`nvidia-smi topo -m`.
"""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import bandwidth
from probe_core.model.distance import (
    UNKNOWN,
    links_of,
    located,
    matrix,
    meanings,
    network_places,
    only_node,
    place_of,
)
from probe_core.wording import counted
from probe_report.figures import accelerators, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc, LinkDoc, ReportDoc
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
        if link["kind"] == kind and links_of(link) and (peer := link.get("peer")) in ids
    }
    order = list(ids)
    return [(order[first], order[second]) for first, second in sorted(linked)]


def _each(own: Sequence[Sequence[LinkDoc]]) -> str:
    """Return ``18 links each · 450 GB/s each way``; less where the devices differ."""
    counts = {sum(links_of(link) for link in links) for links in own}
    rates = {sum(link.get("bandwidth") or 0 for link in links) for links in own}
    parts = [f"{counted(counts.pop(), 'link')} each"] if len(counts) == 1 else []
    if len(rates) == 1 and (rate := rates.pop()):
        parts.append(f"{bandwidth(rate)} each way")
    return " · ".join(parts)


_MOST_IN_MATRIX = 16
"""Devices of the matrix: a page of 1,200 pixels has room for no more columns."""


class Distances(NamedTuple):
    """A matrix: `labels` of rows, shorter `heads` of columns, the words and what they mean.

    `hidden` counts the devices that are not in it.
    """

    labels: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    meanings: str
    hidden: int


def distances_of(report: ReportDoc, names: Names) -> Distances | None:
    """Return the matrix of accelerators and network cards; None where nothing of it is known.

    A matrix of network cards alone is none.
    """
    devices = [(names.label(device), place_of(device)) for device in accelerators(report)]
    cards = network_places(report)
    listed = [*devices, *((cut(card.label, 24), card.place) for card in cards)] if devices else []
    listed, hidden = listed[:_MOST_IN_MATRIX], len(listed[_MOST_IN_MATRIX:])
    rows = matrix(located([place for _, place in listed], only_node(report)))
    words = {word for row in rows for word in row if word != "X"}
    if not words or words == {UNKNOWN}:
        return None
    labels = tuple(label for label, _ in listed)
    return Distances(
        labels=labels,
        # The number is enough where all are accelerators.
        heads=tuple(label.replace(" ", "") if cards else label.split(" ")[-1] for label in labels),
        rows=rows,
        meanings=". ".join(meanings(rows)) + ".",
        hidden=hidden,
    )
