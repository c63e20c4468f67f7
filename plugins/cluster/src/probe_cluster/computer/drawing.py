"""The topology of one computer as a picture: SVG, boxes in boxes, and a graph for Graphviz."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import NamedTuple

from probe_cluster.computer.model import address_of
from probe_core.commands import folded
from probe_core.model.distance import bridge_noun, shared_bridges
from probe_core.model.naming import short_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_cluster.computer.model import Device, Topology
    from probe_core.model.distance import Group, Place


# SVG. Lengths are pixels.

_PAD, _LINE, _ACROSS = 10, 16, 4
_CARD_WIDTH, _CARD_HEIGHT = 190, 56
_LETTERS = 28
"""Characters of 11 pixels that a card has room for."""


class _Box(NamedTuple):
    """A rectangle of a size: lines of text above the boxes that lie in it, in rows."""

    lines: tuple[str, ...]
    rows: tuple[tuple[_Box, ...], ...]
    width: int
    height: int
    fill: str


def svg_of(topology: Topology) -> str:
    """Return the picture: NUMA nodes, in them shared bridges, in them the devices."""
    devices = {device.place.id: device for device in topology.devices}
    homes: dict[int | None, list[Place]] = {node.number: [] for node in topology.nodes}
    for device in topology.devices:
        homes.setdefault(device.place.numa_node, []).append(device.place)
    boxes = []
    names = {node.number: (node.processor, node.cpus) for node in topology.nodes}
    for number, places in homes.items():
        processor, cpus = names.get(number, ("", None)) if number is not None else ("", None)
        title = "NUMA node not known" if number is None else f"NUMA {number}"
        text = [title, processor, f"CPUs {cpus}" if cpus else ""]
        groups, alone = shared_bridges(places)
        inner = [*(_bridge(group, devices) for group in groups), *_cards(alone, devices)]
        boxes.append(_box(filter(None, text), inner, "#f3f4f6"))
    machine = _box(_notes(topology), boxes, "#ffffff", across=2)
    size = f'width="{machine.width}" height="{machine.height}"'
    font = 'font-family="sans-serif" font-size="11"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>'
    return "\n".join([head, *_drawn(machine, 0, 0), "</svg>"])


def _notes(topology: Topology) -> list[str]:
    """Return the direct links between devices, and what links the packages."""
    linked: dict[str, dict[str, None]] = {}
    for device, row in zip(topology.devices, topology.rows, strict=True):
        for other, word in zip(topology.devices, row, strict=True):
            if word.startswith(("NV", "XGMI")):
                linked.setdefault(word, {}).update({device.label: None, other.label: None})
    notes = [f"{word}: {', '.join(labels)}" for word, labels in linked.items()]
    notes += [f"packages linked by {topology.link}"] if topology.link else []
    return [line for note in notes for line in folded(note, 2 * _LETTERS)]


def _bridge(group: Group, devices: dict[str, Device]) -> _Box:
    title = f"{bridge_noun(group.depth)} {short_id(f'pci:{group.address}')}"
    inner = [*(_bridge(below, devices) for below in group.groups), *_cards(group.places, devices)]
    return _box([title], inner, "#e5e7eb")


def _cards(places: Iterable[Place], devices: dict[str, Device]) -> list[_Box]:
    return [_card(devices[place.id]) for place in places]


def _card(device: Device) -> _Box:
    lines = (f"{device.label}  {address_of(device.place)}", device.name[:_LETTERS])
    fill = "#dbeafe" if device.label.startswith("NIC") else "#dcfce7"
    return _Box(lines, (), _CARD_WIDTH, _CARD_HEIGHT, fill)


def _box(lines: Iterable[str], inner: Sequence[_Box], fill: str, across: int = _ACROSS) -> _Box:
    """Return a box as large as what is in it."""
    texts = tuple(lines)
    rows = tuple(tuple(inner[at : at + across]) for at in range(0, len(inner), across))
    widths = [sum(box.width + _PAD for box in row) for row in rows]
    heights = [max(box.height for box in row) + _PAD for row in rows]
    text_width = max((7 * len(text) for text in texts), default=0)
    width = _PAD + max([*widths, text_width + _PAD, _CARD_WIDTH + _PAD])
    return _Box(texts, rows, width, _PAD + _LINE * len(texts) + sum(heights) + _PAD, fill)


def _drawn(box: _Box, left: int, top: int) -> list[str]:
    place = f'x="{left + 1}" y="{top + 1}" width="{box.width - 2}" height="{box.height - 2}"'
    elements = [f'<rect {place} rx="4" fill="{box.fill}" stroke="#6b7280"/>']
    for number, text in enumerate(box.lines, start=1):
        place = f'x="{left + _PAD}" y="{top + _LINE * number + 2}"'
        elements.append(f'<text {place} fill="#111827">{escape(text)}</text>')
    down = top + _PAD + _LINE * len(box.lines)
    for row in box.rows:
        across = left + _PAD
        for inner in row:
            elements += _drawn(inner, across, down)
            across += inner.width + _PAD
        down += max(inner.height for inner in row) + _PAD
    return elements


# DOT, the language of Graphviz.


def dot_of(topology: Topology) -> str:
    """Return the graph: NUMA nodes, root buses, bridges, devices, and their direct links."""
    lines = ["graph topology {", "  node [shape=box];"]
    edges: dict[tuple[str, str], str] = {}
    for node in topology.nodes:
        cpus = f"\nCPUs {node.cpus}" if node.cpus else ""
        lines.append(_node(f"numa{node.number}", f"NUMA {node.number}\n{node.processor}{cpus}"))
    if topology.link:
        numbers = [f"numa{node.number}" for node in topology.nodes]
        edges |= dict.fromkeys(pairwise(numbers), topology.link)
    bridges: dict[str, None] = {}
    for device in topology.devices:
        place = device.place
        name = f"{device.label}  {address_of(place)}\n{device.name}"
        lines.append(_node(device.label, name))
        numa = [] if place.numa_node is None else [f"numa{place.numa_node}"]
        path = [*numa, *place.route, device.label]
        edges |= dict.fromkeys(pairwise(path), "")
        bridges |= dict.fromkeys(place.route)
    lines += [_node(bridge, short_id(f"pci:{bridge}")) for bridge in bridges]
    for at, row in enumerate(topology.rows):
        for other in range(at + 1, len(row)):
            if row[other].startswith(("NV", "XGMI")):
                edges[topology.devices[at].label, topology.devices[other].label] = row[other]
    for (first, second), label in edges.items():
        text = f" [label={_quoted(label)}]" if label else ""
        lines.append(f"  {_quoted(first)} -- {_quoted(second)}{text};")
    return "\n".join([*lines, "}"])


def _node(name: str, label: str) -> str:
    return f"  {_quoted(name)} [label={_quoted(label)}];"


def _quoted(text: str) -> str:
    """Return a quoted string of DOT, in which a backslash and n are a new line."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
