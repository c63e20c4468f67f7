"""Thunderbolt and RDMA links of a node, and who is whose neighbour in a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from probe_cluster.links import KINDS, Link
from probe_core.machine import Machine
from probe_exo import mac_links

__all__ = ["NodeLinks", "RdmaPort", "ThunderboltPort", "neighbours", "node_links"]

_BUS = "/sys/bus/thunderbolt/devices"
_RDMA = "/sys/class/infiniband"


@dataclass(frozen=True, slots=True)
class ThunderboltPort:
    """One end of a Thunderbolt connection."""

    uuid: str
    """This host's id in the connection."""
    peer: str | None
    """The other host's; None while nothing, or no host, is at the other end."""
    interface: str | None
    """Network interface that RDMA uses (``rdma_en2``), where the system names it."""
    gbits: float | None
    """Speed now, in Gbit/s and direction."""


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """One port of an RDMA device."""

    name: str
    """``mlx5_0/1``."""
    active: bool
    """Whether the link is up."""
    gbits: float | None
    """Rate in Gbit/s."""


@dataclass(frozen=True, slots=True)
class NodeLinks:
    """All of them."""

    thunderbolt: tuple[ThunderboltPort, ...] = ()
    rdma: tuple[RdmaPort, ...] = ()
    rdma_enabled: bool | None = None
    """Whether the system has RDMA over Thunderbolt switched on; None where nobody says."""


def node_links(machine: Machine | None = None) -> NodeLinks:
    """Return the links of this node, or of a recorded `machine`. Blocks on a Mac; never raises."""
    target = machine or Machine()
    if target.os == "darwin" and target.live:
        ports = [ThunderboltPort(*port) for port in mac_links.thunderbolt_ports()]
        return NodeLinks(tuple(ports), rdma_enabled=mac_links.rdma_enabled())
    return NodeLinks(_linux_thunderbolt(target), _linux_rdma(target))


def _linux_thunderbolt(machine: Machine) -> tuple[ThunderboltPort, ...]:
    """Read the other hosts on the bus: devices like 0-1, whose router's host is 0-0.

    See the kernel's Documentation/ABI/testing/sysfs-bus-thunderbolt. Docks and disks have no
    services of another host, and are left out.
    """
    ports: list[ThunderboltPort] = []
    names = machine.listdir(_BUS)
    for name in names:
        domain, _, route = name.partition("-")
        if not domain.isdecimal() or not route.isalnum() or route == "0":
            continue
        if not any(other.startswith(f"{name}.") for other in names):
            continue  # no XDomain service: not a host
        uuid = machine.read(f"{_BUS}/{domain}-0/unique_id", 64)
        peer = machine.read(f"{_BUS}/{name}/unique_id", 64)
        if uuid and peer:
            speed = _speed(machine, f"{_BUS}/{name}")
            ports.append(ThunderboltPort(uuid, peer, None, speed))
    return tuple(ports)


def _speed(machine: Machine, folder: str) -> float | None:
    """Return "20.0 Gb/s" per lane times the lanes."""
    fields = (machine.read(f"{folder}/tx_speed", 32) or "").split()
    lanes = machine.read_int(f"{folder}/tx_lanes")
    try:
        return float(fields[0]) * (lanes or 1)
    except (IndexError, ValueError):
        return None


def _linux_rdma(machine: Machine) -> tuple[RdmaPort, ...]:
    ports: list[RdmaPort] = []
    for device in machine.listdir(_RDMA):
        for port in machine.listdir(f"{_RDMA}/{device}/ports"):
            folder = f"{_RDMA}/{device}/ports/{port}"
            state = machine.read(f"{folder}/state", 64) or ""
            fields = (machine.read(f"{folder}/rate", 64) or "").split()
            try:
                gbits: float | None = float(fields[0])
            except (IndexError, ValueError):
                gbits = None
            ports.append(RdmaPort(f"{device}/{port}", "ACTIVE" in state, gbits))
    return tuple(ports)


def neighbours(links: Mapping[str, NodeLinks]) -> dict[tuple[str, str], Link]:
    """Return the Thunderbolt links between nodes, for `probe_cluster.Links`.

    `links` is what each node says of itself. With RDMA switched on at both ends the link counts as
    RDMA. A peer that no node knows is left out.
    """
    owner = {port.uuid: id_ for id_, ends in links.items() for port in ends.thunderbolt}
    connections: dict[tuple[str, str], Link] = {}
    for id_, ends in links.items():
        for port in ends.thunderbolt:
            other = owner.get(port.peer or "")
            if other is not None and other != id_:
                rdma = bool(ends.rdma_enabled and links[other].rdma_enabled)
                connections[min(id_, other), max(id_, other)] = _link(port.gbits, rdma)
    return connections


def _link(gbits: float | None, rdma: bool) -> Link:
    if rdma:
        return KINDS["rdma"]
    # Thunderbolt 5 runs at 80 Gbit/s each way, 3 and 4 at 40.
    return KINDS["thunderbolt5" if gbits is not None and gbits >= 80 else "thunderbolt4"]
