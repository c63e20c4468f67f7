"""Kind and speed of a node's network interfaces, in the words of current exo; no packet is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from probe_core.machine import Machine

__all__ = ["InterfaceKind", "NetworkLink", "node_interfaces"]

InterfaceKind = Literal["wifi", "ethernet", "thunderbolt", "unknown"]
"""Those of exo's `InterfaceType` that the kernel can tell."""

_FOLDER = "/sys/class/net"
_ETHERNET = 1  # ARPHRD_ETHER in the kernel's if_arp.h
_THUNDERBOLT = "thunderbolt-net"


@dataclass(frozen=True, slots=True)
class NetworkLink:
    """One interface."""

    kind: InterfaceKind
    """``unknown`` for what is no device: bridges, tunnels, a container's veth."""
    mbits: float | None
    """Speed now in Mbit/s; None while the link is down, and of Wi-Fi, whose driver has no file."""


def node_interfaces(machine: Machine | None = None) -> dict[str, NetworkLink]:
    """Return each interface's kind and speed by its name, of this node or of a recorded `machine`.

    Read from /sys/class/net, see the kernel's Documentation/ABI/testing/sysfs-class-net; empty on
    other systems. Never raises.
    """
    target = machine or Machine()
    names = target.listdir(_FOLDER) if target.os == "linux" else []
    folders = {name: f"{_FOLDER}/{name}" for name in names}
    return {
        name: NetworkLink(_kind(target, folder), _mbits(target, folder))
        for name, folder in folders.items()
        if target.exists(f"{folder}/type")  # /sys/class/net/bonding_masters is a file
    }


def _kind(machine: Machine, folder: str) -> InterfaceKind:
    if machine.exists(f"{folder}/phy80211") or machine.exists(f"{folder}/wireless"):
        return "wifi"
    if not machine.exists(f"{folder}/device"):
        return "unknown"
    if machine.realpath(f"{folder}/device/driver").rpartition("/")[2] == _THUNDERBOLT:
        return "thunderbolt"
    return "ethernet" if machine.read_int(f"{folder}/type") == _ETHERNET else "unknown"


def _mbits(machine: Machine, folder: str) -> float | None:
    """Return the speed; EINVAL or -1 (then unknown) while the link is down."""
    speed = machine.read_int(f"{folder}/speed")
    return float(speed) if speed is not None and 0 < speed < 1 << 31 else None
