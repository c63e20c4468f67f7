"""Thunderbolt and RDMA links of a node, and who is whose neighbour in a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from probe_cluster.planning.links import KINDS, Link
from probe_core.commands import node_network
from probe_core.machine import Machine
from probe_exo import mac_links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import NetworkDoc

__all__ = ["NodeLinks", "RdmaPort", "ThunderboltPort", "neighbours", "node_links"]


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
    """Return the links of this node, or of a recorded `machine`. Blocks on a Mac; never raises.

    Linux's are those of the report's ``node.network``, read now: a driver that hangs costs the
    rates and 0.2 s. Thunderbolt's docks and disks are no hosts, and left out.
    """
    target = machine or Machine()
    if target.os == "darwin" and target.live:
        ports = [ThunderboltPort(*port) for port in mac_links.thunderbolt_ports()]
        return NodeLinks(tuple(ports), rdma_enabled=mac_links.rdma_enabled())
    links = node_network(target)
    hosts = [(link.get("id"), link.get("peer"), link) for link in links]
    return NodeLinks(
        tuple(
            ThunderboltPort(own, peer, None, _gbits(link))
            for own, peer, link in hosts
            if own and peer and link["kind"] == "thunderbolt"
        ),
        tuple(
            RdmaPort(link["name"], link["state"] == "up", _gbits(link))
            for link in links
            if link["kind"] == "rdma"
        ),
    )


def _gbits(link: NetworkDoc) -> float | None:
    rate = link["bandwidth"]
    return None if rate is None else rate * 8 / 1e9


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
