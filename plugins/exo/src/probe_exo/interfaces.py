"""Kind and speed of a node's network interfaces, in the words of current exo; no packet is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from probe_core.commands import node_network
from probe_core.machine import Machine

__all__ = ["InterfaceKind", "NetworkLink", "node_interfaces"]

InterfaceKind = Literal["wifi", "ethernet", "thunderbolt", "unknown"]
"""Those of exo's `InterfaceType` that the kernel can tell."""

_KINDS: dict[str, InterfaceKind] = {
    "wifi": "wifi",
    "ethernet": "ethernet",
    "thunderbolt-net": "thunderbolt",
}
"""Kinds of `node.network` that exo has words for."""

_FOLDER = "/sys/class/net"


@dataclass(frozen=True, slots=True)
class NetworkLink:
    """One interface."""

    kind: InterfaceKind
    """``unknown`` for what is no device: bridges, tunnels, a container's veth."""
    mbits: float | None
    """Speed now in Mbit/s; None while the link is down or its device sleeps, of Wi-Fi, whose driver
    has no file, and of what is no device."""


def node_interfaces(machine: Machine | None = None) -> dict[str, NetworkLink]:
    """Return each interface's kind and speed by its name, of this node or of a recorded `machine`.

    Read now, as the report's ``node.network`` is: a driver that hangs costs the speeds and 0.2 s.
    Empty on other systems than Linux. Never raises.
    """
    target = machine or Machine()
    names = target.listdir(_FOLDER) if target.os == "linux" else []
    # /sys/class/net/bonding_masters is a file
    links = {name: NetworkLink("unknown", None) for name in names if _is_interface(target, name)}
    for link in node_network(target):
        if (name := link["name"]) in links:
            rate = link["bandwidth"]
            mbits = None if rate is None else rate * 8 / 1e6
            links[name] = NetworkLink(_KINDS.get(link["kind"], "unknown"), mbits)
    return links


def _is_interface(machine: Machine, name: str) -> bool:
    return machine.exists(f"{_FOLDER}/{name}/type")
