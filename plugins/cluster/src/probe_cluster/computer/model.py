"""The topology of one computer: NUMA nodes, devices and network cards, and what is between them."""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import numa_cpus
from probe_core.model.distance import (
    Place,
    interconnect,
    located,
    matrix,
    meanings,
    network_places,
    only_node,
    place_of,
)
from probe_core.model.ids import ACCELERATORS
from probe_core.model.naming import short_id, short_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, Json, ReportDoc

_BUS = "/sys/bus/pci/devices"

_LABELS = {"gpu": "GPU", "npu": "NPU", "accelerator": "ACC", "coprocessor": "COP"}


class Node(NamedTuple):
    """A NUMA node: its number, the names of its processors, its CPUs as the kernel lists them."""

    number: int
    processor: str
    cpus: str | None


class Device(NamedTuple):
    """A device or a network card: its label and name, its place, and the CPUs near it."""

    label: str
    name: str
    place: Place
    cpus: str | None


class Topology(NamedTuple):
    """One computer: `rows` is the matrix of the devices, `link` what links its packages.

    `silent` are the labels of GPUs whose driver lists no direct links, though it may have some.
    """

    nodes: tuple[Node, ...]
    devices: tuple[Device, ...]
    rows: tuple[tuple[str, ...], ...]
    meanings: tuple[str, ...]
    link: str | None
    silent: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the document of `probe topology --json`."""
        return {
            "schema": 1,
            "numa_nodes": [
                {"number": node.number, "processor": node.processor, "cpus": node.cpus}
                for node in self.nodes
            ],
            "packages_linked_by": self.link,
            "devices": [
                {
                    "label": device.label,
                    "id": device.place.id,
                    "name": device.name,
                    "numa_node": device.place.numa_node,
                    "cpus": device.cpus,
                    "route": list(device.place.route),
                }
                for device in self.devices
            ],
            "distances": [list(row) for row in self.rows],
            "meanings": list(self.meanings),
            "direct_links_unknown": list(self.silent),
        }


def topology_of(machine: Machine, report: ReportDoc) -> Topology:
    """Return the topology of a machine and its report; beside the report it reads /sys alone."""
    named = [*_accelerators(report), *_cards(report)]
    places = located([_placed(machine, place) for _, _, place in named], only_node(report))
    cpus = {node: ranges(own) for node, own in numa_cpus(machine).items()}
    devices = tuple(
        Device(label, name, place, _near(machine, place, cpus))
        for (label, name, _), place in zip(named, places, strict=True)
    )
    rows = matrix(places)
    nodes = _nodes(report, cpus)
    link = interconnect(report)
    words = _meanings(rows, link, _one_to_one(report))
    return Topology(nodes, devices, rows, words, link, _silent(report, devices))


_LISTS = {"nvidia": "nvml", "amd": "kfd"}
"""The list of a vendor's driver that has direct links: who is not in it was not asked."""


def _silent(report: ReportDoc, devices: Sequence[Device]) -> tuple[str, ...]:
    labels = {device.place.id: device.label for device in devices}
    gpus = [device for device in report["devices"] if device["id"] in labels]
    vendors = [device["vendor"] for device in gpus]
    return tuple(
        labels[device["id"]]
        for device in gpus
        if device["kind"] == "gpu"
        and (driver := _LISTS.get(device["vendor"] or ""))
        and driver not in (device.get("node_index") or ())
        and vendors.count(device["vendor"]) > 1
    )


def _accelerators(report: ReportDoc) -> list[tuple[str, str, Place]]:
    """Return label, name and place of what computes, with no part of another device.

    GPUs of all vendors are counted together, by address: a runtime's own numbers are for one.
    """
    ids = {device["id"] for device in report["devices"]}
    kinds = (*ACCELERATORS, "coprocessor")
    whole = [
        device
        for device in report["devices"]
        if device["kind"] in kinds and device.get("parent") not in ids
    ]
    counts: dict[str, int] = {}
    named = []
    for device in sorted(whole, key=lambda device: (kinds.index(device["kind"]), device["id"])):
        number = counts.get(device["kind"], 0)
        counts[device["kind"]] = number + 1
        label = f"{_LABELS[device['kind']]}{number}"
        named.append((label, short_name(device) or "unknown device", place_of(device)))
    return named


def _cards(report: ReportDoc) -> list[tuple[str, str, Place]]:
    return [
        (card.label.replace(" ", ""), ", ".join(card.names), card.place)
        for card in network_places(report)
    ]


def _placed(machine: Machine, place: Place) -> Place:
    """Return the place with the folders that the device lies in, where the kernel shows it."""
    kind, _, address = place.id.partition(":")
    path = f"{_BUS}/{address}"
    if kind != "pci" or machine.os != "linux" or not machine.exists(path):
        return place
    parts = machine.realpath(path).split("/")
    roots = [at for at, part in enumerate(parts) if part[:3] == "pci" and part.count(":") == 1]
    return place._replace(route=tuple(parts[roots[0] : -1])) if roots else place


def _near(machine: Machine, place: Place, cpus: dict[int, str]) -> str | None:
    """Return the CPUs that the kernel lists for a device, else those of its NUMA node."""
    kind, _, address = place.id.partition(":")
    if kind == "pci" and machine.os == "linux":
        text = machine.read(f"{_BUS}/{address}/local_cpulist", 4096)
        if text and text.replace(",", "").replace("-", "").isdecimal():
            return text
    return None if place.numa_node is None else cpus.get(place.numa_node)


def _nodes(report: ReportDoc, cpus: dict[int, str]) -> tuple[Node, ...]:
    """Return the nodes with CPUs; those of memory alone have no device near them."""
    names: dict[int, str] = {}
    for device in report["devices"]:
        if device["kind"] == "cpu":
            for number in _numbers(device):
                names.setdefault(number, short_name(device) or "unknown processor")
    numbers = sorted(names.keys() | cpus.keys())
    return tuple(Node(n, names.get(n, "unknown processor"), cpus.get(n)) for n in numbers)


def _numbers(device: DeviceDoc) -> list[int]:
    node = device.get("numa_node")
    return list(device.get("numa_nodes") or ([] if node is None else [node]))


def _one_to_one(report: ReportDoc) -> bool:
    """Return whether each package has one NUMA node of its own."""
    own = [_numbers(device) for device in report["devices"] if device["kind"] == "cpu"]
    return all(len(nodes) == 1 for nodes in own) and len({nodes[0] for nodes in own}) == len(own)


def _meanings(rows: Sequence[Sequence[str]], link: str | None, one_to_one: bool) -> tuple[str, ...]:
    """Return the meanings; of ``SYS`` also what links the packages, where that is known."""
    over = f", over {link}" if one_to_one else f"; between packages over {link}"
    return tuple(
        f"{text}{over}" if link and text.startswith("SYS") else text for text in meanings(rows)
    )


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as the kernel lists CPUs: ``0-3,8``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def address_of(place: Place) -> str:
    """Return the id of a device as `lspci` writes it."""
    return short_id(place.id)
