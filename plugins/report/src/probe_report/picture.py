"""The picture of the node: boxes in boxes, by where a device is attached.

Packages hold NUMA nodes, these the PCIe switches that several devices share, these the devices. As
in hwloc's drawings, the box of a thing is inside the box of what it hangs on. A device is a card:
its state, its memory as a bar, its link and its parts.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from probe_core.commands import bandwidth, size
from probe_core.model.distance import bridge_noun, network_places, place_of, shared_bridges
from probe_core.model.ids import ACCELERATORS
from probe_core.model.naming import short_id
from probe_core.wording import counted
from probe_report.fabric import Fabric, fabrics_of
from probe_report.figures import (
    UNKNOWN,
    Names,
    cut,
    has_own_memory,
    is_whole,
    model_of,
    percent,
    short,
    style_of,
    word_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.distance import Card as NetworkCard
    from probe_core.model.distance import Group, Place
    from probe_core.model.document import DeviceDoc, LinkDoc, ReportDoc


_MOST_PACKAGES = 16
"""Packages of their own box; a machine of 512 has the rest as a sentence."""

_MOST_CARDS = 64
"""Devices and network cards of their own box; a card takes 700 bytes of the page."""


class Box(NamedTuple):
    """A NUMA node or a PCIe bridge, with what hangs on it."""

    title: str
    address: str
    kind: str
    boxes: tuple[Box, ...]
    cards: tuple[Card, ...]


class Package(NamedTuple):
    """A processor package; without a name where devices hang on none that is known."""

    title: str
    cpu: str
    note: str
    box: Box
    displays: str


class Picture(NamedTuple):
    """The whole machine: `numbers` says whose numbers GPUs have, `beyond` what has no box."""

    memory: str
    packages: tuple[Package, ...]
    fabrics: tuple[Fabric, ...]
    numbers: str
    beyond: str
    has_unknown: bool
    has_asleep: bool
    has_memory: bool


class _Drawing:
    """What all boxes of a picture need: names, the links that are drawn, the parts of devices."""

    def __init__(self, report: ReportDoc, names: Names, fabrics: Sequence[Fabric]) -> None:
        self.names = names
        self.linked = frozenset(identity for fabric in fabrics for identity in fabric.ids)
        self.parts: dict[str, list[DeviceDoc]] = defaultdict(list)
        for device in report["devices"]:
            if parent := device.get("parent"):
                self.parts[parent].append(device)

    def item(self, device: DeviceDoc) -> Item:
        """Return a device with its parts."""
        parts = self.parts.get(device["id"], [])
        card = card_of(device, self.names, parts, linked=device["id"] in self.linked)
        return Item(place_of(device), card)


class Item(NamedTuple):
    """A device or a network card: where it hangs, and what is drawn of it."""

    place: Place
    card: Card


def _box(title: str, address: str, kind: str, items: Sequence[Item]) -> Box:
    """Return a box with the items below the bridges that several of them share."""
    cards = {item.place.id: item.card for item in items}
    groups, alone = shared_bridges([item.place for item in items])
    boxes = tuple(_bridge(group, cards) for group in groups)
    return Box(title, address, kind, boxes, tuple(cards[place.id] for place in alone))


def _bridge(group: Group, cards: Mapping[str, Card]) -> Box:
    boxes = tuple(_bridge(inner, cards) for inner in group.groups)
    address = cut(short_id(f"pci:{group.address}"), 24)
    own = tuple(cards[place.id] for place in group.places)
    return Box(bridge_noun(group.depth), address, "bridge", boxes, own)


def picture_of(report: ReportDoc, names: Names) -> Picture:
    """Return the picture of a report's node."""
    ids = frozenset(device["id"] for device in report["devices"])
    whole = [device for device in report["devices"] if is_whole(device, ids)]
    cpus = [device for device in whole if device["kind"] == "cpu"]
    drawn = [device for device in whole if device["kind"] in (*ACCELERATORS, "coprocessor")]
    network = network_places(report)
    displays = [device for device in whole if device["kind"] == "display"]
    fabrics = fabrics_of(drawn, names)
    drawing = _Drawing(report, names, fabrics)
    items = [*map(drawing.item, drawn), *(_network_item(card, report) for card in network)]
    packages = _packages(drawing, cpus, items[:_MOST_CARDS], displays)
    shown = packages[:_MOST_PACKAGES]
    return Picture(
        memory=size(report["node"]["memory"]["total"]),
        packages=tuple(shown),
        fabrics=fabrics,
        numbers=f"GPUs have the numbers of {names.runtime}" if names.runtime else "",
        beyond=_beyond(len(packages) - len(shown), len(items) - _MOST_CARDS),
        has_unknown=any(used_of(device) is None and has_own_memory(device) for device in drawn),
        has_asleep=any(word_of(device) == "asleep" for device in drawn),
        has_memory=any(used_of(device) is not None for device in drawn),
    )


def _beyond(packages: int, devices: int) -> str:
    amounts = ((packages, "package"), (devices, "device"))
    parts = [counted(count, noun) for count, noun in amounts if count > 0]
    return f"{' and '.join(parts)} not drawn" if parts else ""


def _packages(
    drawing: _Drawing,
    cpus: Sequence[DeviceDoc],
    items: Sequence[Item],
    displays: Sequence[DeviceDoc],
) -> list[Package]:
    """Return the packages, those with devices first, and a place for what hangs on none."""
    homes = {node: at for at, cpu in enumerate(cpus) for node in _nodes(cpu)}
    only = 0 if len(cpus) == 1 else None

    def home(node: int | None) -> int | None:
        return only if node is None else homes.get(node, only)

    members: dict[int | None, list[Item]] = defaultdict(list)
    adapters: dict[int | None, list[DeviceDoc]] = defaultdict(list)
    for item in items:
        members[home(item.place.numa_node)].append(item)
    for display in displays:
        adapters[home(display.get("numa_node"))].append(display)
    packages = [
        _package(drawing, at, cpu, members[at], adapters[at]) for at, cpu in enumerate(cpus)
    ]
    packages.sort(key=lambda package: not (package.box.cards or package.box.boxes))
    if members[None] or adapters[None]:
        title = "package not known" if cpus else "no processor is known"
        box = _box("", "", "package", members[None])
        packages.append(Package(title, "", "", box, _displays(drawing, adapters[None])))
    return packages


def _nodes(cpu: DeviceDoc) -> list[int]:
    node = cpu.get("numa_node")
    return list(cpu.get("numa_nodes") or ([] if node is None else [node]))


def _package(
    drawing: _Drawing,
    number: int,
    cpu: DeviceDoc,
    items: Sequence[Item],
    displays: Sequence[DeviceDoc],
) -> Package:
    nodes = _nodes(cpu)
    title = f"package {number}"
    if len(nodes) == 1:
        title += f" · NUMA {nodes[0]}"
    elif nodes:
        title += f" · NUMA {nodes[0]}–{nodes[-1]}"
    counts = [
        counted(cpu["units"], "core") if cpu["units"] else None,
        counted(threads, "thread") if (threads := cpu.get("threads")) else None,
    ]
    return Package(
        title=title,
        cpu=model_of(cpu),
        note=", ".join(filter(None, counts)),
        box=_node_boxes(nodes, items),
        displays=_displays(drawing, displays),
    )


def _node_boxes(nodes: Sequence[int], items: Sequence[Item]) -> Box:
    """Return a box for each NUMA node with devices, where the package has several nodes."""
    if len(nodes) < 2:
        return _box("", "", "package", items)
    groups: dict[int | None, list[Item]] = defaultdict(list)
    for item in items:
        groups[item.place.numa_node].append(item)
    boxes = tuple(
        _box(f"NUMA {UNKNOWN if node is None else node}", "", "numa", members)
        for node, members in sorted(groups.items(), key=lambda group: (group[0] is None, group[0]))
    )
    return Box("", "", "package", boxes, ())


def _displays(drawing: _Drawing, displays: Sequence[DeviceDoc]) -> str:
    if not displays:
        return ""
    names = [
        f"{device['vendor'] or 'unknown'} {drawing.names.address(device['id'])}"
        for device in displays
    ]
    return cut(f"display only: {short(names, 4)}", 240)


# One device: its state, its memory as a bar, its link and its parts.

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


def _network_item(card: NetworkCard, report: ReportDoc) -> Item:
    """Return a network card: up where one of its ports is, at the speed of its fastest one."""
    links = [link for link in report["node"]["network"] if link.get("device") == card.place.id]
    states = [link["state"] for link in links if link["state"]]
    status = "up" if "up" in states else states[0] if states else ""
    rates = [rate for link in links if (rate := link["bandwidth"])]
    shown = Card(
        label=card.label,
        status=cut(status, 24) or "state not known",
        style="good" if status == "up" else "none",
        name=cut(", ".join(card.names), 80),
        memory=bandwidth(max(rates)) if rates else "speed not known",
        used=None,
        busy=False,
        has_bar=False,
        link="",
        address=cut(short_id(card.place.id), 24),
        linked=False,
        parts=(),
    )
    return Item(card.place, shown)


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
