"""Links of a node that few have: RDMA ports, and Thunderbolt connections to other hosts."""

from __future__ import annotations

from probe_core.pipeline.node import BUS, MAX_LINKS, RDMA, place, shares, sleeps
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.machine import Machine
    from probe_core.model.document import NetworkDoc
    from probe_core.pipeline.node import Question, Rate

__all__ = ["connections", "ports"]

_GIGABIT = 125_000_000
"""Bytes."""


def ports(machine: Machine, names: Sequence[str]) -> tuple[list[NetworkDoc], list[Question]]:
    """Return the RDMA ports of these devices, and what to ask of each."""
    links: list[NetworkDoc] = []
    questions: list[Question] = []
    for name in names[:MAX_LINKS]:
        folder = f"{RDMA}/{name}"
        if shares(machine, f"{folder}/device", "infiniband"):
            continue
        for port in machine.listdir(f"{folder}/ports")[: MAX_LINKS - len(links)]:
            layer = machine.read(f"{folder}/ports/{port}/link_layer", 32)
            link: NetworkDoc = {
                "name": clean_text(f"{name}/{port}"),
                "kind": "rdma",
                "state": None,
                "bandwidth": None,
                "reason": None,
            }
            if layer:
                link["layer"] = clean_text(layer.lower())
            place(machine, f"{folder}/device", link)
            if interface := _interface_of(machine, folder):
                link["interface"] = interface
            links.append(link)
            questions.append(_rate_of(machine, folder, port))
    return links, questions


def _interface_of(machine: Machine, folder: str) -> str | None:
    """Return the interface of the same device; None where it has none or several."""
    names = machine.listdir(f"{folder}/device/net")
    return clean_text(names[0]) if len(names) == 1 else None


def _rate_of(machine: Machine, folder: str, port: str) -> Question:
    def ask() -> tuple[Rate, str | None]:
        if sleeps(machine, f"{folder}/device"):
            return (None, "the device is suspended"), None
        # "4: ACTIVE", and "400 Gb/sec (4X NDR)"; a port without a link has a rate all the same.
        state = (machine.read(f"{folder}/ports/{port}/state", 64) or "").rpartition(" ")[2]
        state = {"active": "up"}.get(state.lower(), state.lower())
        if state != "up":
            return (None, "the link is down" if state else "the driver reports no state"), state
        rate = _number((machine.read(f"{folder}/ports/{port}/rate", 64) or "").partition(" ")[0])
        return (rate and rate * _GIGABIT, None if rate else "the driver reports no rate"), state

    return ask


def _number(text: str) -> float | None:
    """Return a small decimal number such as ``2.5``; None for anything else."""
    whole, dot, fraction = text.partition(".")
    if len(text) > 9 or not whole.isdecimal() or (dot and not fraction.isdecimal()):
        return None
    return float(text)


def connections(machine: Machine, names: Sequence[str], anonymous: bool) -> list[NetworkDoc]:
    """Return the Thunderbolt connections to other hosts: devices such as 0-1 with services.

    See the kernel's Documentation/ABI/testing/sysfs-bus-thunderbolt. Docks and disks have no
    services of another host (0-1.0), and are left out.
    """
    links: list[NetworkDoc] = []
    for name in names:
        domain, dash, route = name.partition("-")
        is_device = domain.isdecimal() and dash and route.isalnum() and route != "0"
        if not is_device or not any(other.startswith(f"{name}.") for other in names):
            continue
        lane = _number((machine.read(f"{BUS}/{name}/tx_speed", 32) or "").partition(" ")[0])
        lanes = machine.read_int(f"{BUS}/{name}/tx_lanes") or 1
        link: NetworkDoc = {
            "name": clean_text(name),
            "kind": "thunderbolt",
            "state": "up",
            "bandwidth": lane and lane * lanes * _GIGABIT,
            "reason": None if lane else "the driver reports no speed",
        }
        own = machine.read(f"{BUS}/{domain}-0/unique_id", 64)
        peer = machine.read(f"{BUS}/{name}/unique_id", 64)
        if own and peer and not anonymous:
            link["id"], link["peer"] = clean_text(own), clean_text(peer)
        links.append(link)
    return links[:MAX_LINKS]
