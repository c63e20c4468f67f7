"""The nodes that the tables of cases name, and how a table's line is read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import visibility_nodes as nodes

Device = dict[str, Any]
UNIQUE = (0x1A2B3C4D5E6F7081, 0x1A2B99990000AAAA, 0xBEEF000000000001, 0x00000000C0FFEE00)


class Case(NamedTuple):
    """One line of a table; `expected` is the runtime's list, or several, or what it may show."""

    place: str
    node: str
    runtime: str
    environ: dict[str, str]
    expected: str
    source: str


def cut(driver: str) -> list[Device]:
    """A plain GPU, one in MIG mode (GPU instance 1; 2 with two compute instances), a plain one."""
    said = {"name": "nvidia", "version": driver} if driver else {"name": "nvidia"}
    plain, parent, last = (nodes.nvidia(slot, driver=said) for slot in (1, 2, 3))
    return [plain, parent, mig(parent, 1, 0), mig(parent, 2, 0), mig(parent, 2, 1), last]


def mig(parent: Device, gi: int, ci: int) -> Device:
    return nodes.mig(parent, 0xA0 + gi * 16 + ci, gi, ci)


def legacy(parent: Device, gi: int) -> Device:
    """An instance as drivers before R470 name it: by its GPU's UUID and its numbers."""
    uuid = f"MIG-{parent['ids'][1][5:]}/{gi}/0"
    device = nodes.mig(parent, 1, gi)
    return device | {"id": f"uuid:{uuid}", "ids": [f"uuid:{uuid}"], "extra": {}}


def r460() -> list[Device]:
    parent = nodes.nvidia(1, driver={"name": "nvidia", "version": "460.106.00"})
    return [parent, legacy(parent, 7), legacy(parent, 9)]


def two_cut() -> list[Device]:
    first, second = nodes.nvidia(1), nodes.nvidia(2)
    return [first, mig(first, 1, 0), mig(first, 2, 0), second, mig(second, 3, 0)]


def mixed() -> list[Device]:
    h100s = [nodes.nvidia(slot, pci={"id": "10de:2330"}) for slot in (1, 2)]
    return [*h100s, nodes.amd(3, UNIQUE[0], 1), nodes.amd(4, UNIQUE[1], 2)]


def rtx() -> list[Device]:
    fast = nodes.nvidia(2, name="NVIDIA GeForce RTX 4090", pci={"id": "10de:2684"})
    slow = nodes.nvidia(1, name="NVIDIA GeForce RTX 3060", pci={"id": "10de:2503"})
    return [slow, fast]


def arcs() -> list[Device]:
    built_in = nodes.intel(0, name="Intel Graphics", code="7d55", memory={"kind": "unified"})
    return [built_in, nodes.intel(3), nodes.intel(4)]


def pvc() -> list[Device]:
    def card(slot: int) -> Device:
        return nodes.intel(
            slot, name="Intel Data Center GPU Max 1550", code="0bd5", extra={"tiles": 4}
        )

    return [card(1), card(2)]


NODES: dict[str, list[Device]] = {
    "h8": nodes.h100s(8),
    "h4": nodes.h100s(4),
    "h1": nodes.h100s(1),
    "h12": nodes.h100s(12),
    "rtx": rtx(),
    "cut580": cut("580.95.05"),
    "cut570": cut("570.86.10"),
    "cut565": cut("565.57.01"),
    "cut470": cut("470.42.01"),
    "cut": cut(""),
    "r460": r460(),
    "two-cut": two_cut(),
    "a4": [nodes.amd(at + 1, UNIQUE[at], at + 1) for at in range(4)],
    "a1": [nodes.amd(1, UNIQUE[0], 1)],
    "kfd": [nodes.amd(1, UNIQUE[0], 5), nodes.amd(2, UNIQUE[1], 3)],
    "no-unique": [nodes.amd(1, None, 1), nodes.amd(2, None, 2)],
    "mixed": mixed(),
    "arcs": arcs(),
    "pvc": pvc(),
    "flex": [nodes.intel(slot, extra={"tiles": 2}) for slot in (1, 2)],
    "all": [*mixed(), nodes.intel(5)],
}


def short(devices: list[Device]) -> dict[str, str]:
    """Return a short name for each device's id: its vendor's letter and PCI bus, or MIG numbers."""
    said = {}
    for device in devices:
        name = device["id"]
        if name.startswith("pci:"):
            said[name] = device["vendor"][0] + str(int(name.split(":")[2], 16))
        else:
            parent = int(device["parent"].split(":")[2], 16)
            said[name] = f"m{parent}." + _numbers(device)
    return said


def _numbers(device: Device) -> str:
    numbers = device["extra"]
    if numbers:
        return f"{numbers['gpu_instance']}.{numbers['compute_instance']}"
    return ".".join(device["id"].split("/")[1:])


def filled(text: str, devices: list[Device]) -> str:
    """Put UUIDs into ``{n2}``, and their first twelve characters into ``{n2:12}``."""
    known = {}
    names = short(devices)
    for device in devices:
        for other in device["ids"]:
            if other.startswith("uuid:"):
                known[names[device["id"]]] = other[5:]

    def uuid(match: re.Match[str]) -> str:
        whole = known[match[1]]
        return whole[: int(match[2])] if match[2] else whole

    return re.sub(r"\{([a-z][\d.]+)(?::(\d+))?\}", uuid, text)


def cases(file: Path) -> list[Case]:
    """Read a table: node, runtime, environment, expected and source, apart by tabs."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        node, runtime, environment, expected, source = line.split("\t")
        pairs = (word.partition("=") for word in shlex.split(filled(environment, NODES[node])))
        environ = {name: value for name, _, value in pairs}
        found.append(Case(f"{file.stem}:{number}", node, runtime, environ, expected, source))
    return found


def told(view: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return a runtime's answer as the tables write it.

    ``n1 n3``: seen, in this order. ``-``: nothing. ``n1 n2 | n2 n1``: one of these. ``n1 ? n2``:
    n1 is seen, of n2 only the driver knows.
    """
    if "one_of" in view:
        return " | ".join(_row(row, names) for row in view["one_of"])
    row = _row(view["visible"], names)
    unsure = [name for name in view.get("possible", ()) if name not in view["visible"]]
    return f"{row} ? {_row(unsure, names)}" if unsure else row


def _row(ids: list[str], names: Mapping[str, str]) -> str:
    return " ".join(names[one] for one in ids) or "-"
