"""A node's network: kind and speed of its interfaces, Thunderbolt, RDMA, and its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from probe_cluster.planning.links import KINDS, Link
from probe_core.commands import node_network
from probe_core.machine import Machine
from probe_exo import mac

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import NetworkDoc


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
    has no file, and of what is no device. Of Thunderbolt that of the cable, which IP does not
    reach: 10 to 16 of 40 Gbit/s."""
    thunderbolt: int | None = None
    """Generation of a Thunderbolt link, by its speed now: 5 at 80 Gbit/s, 4 (or 3, whose links are
    alike) at 40; None of slower ones and of others."""
    rdma: str | None = None
    """RDMA device of the interface that can be used now (``mlx5_0``, ``rdma_en2``)."""


def node_interfaces(machine: Machine | None = None) -> dict[str, NetworkLink]:
    """Return each interface's kind and speed by its name, of this node or of a recorded `machine`.

    Read now. On Linux as the report's ``node.network`` is: a driver that hangs costs the speeds and
    0.2 s. A Mac is asked with four commands of its system, each of which ends after 10 s. Empty
    elsewhere. Never raises.
    """
    target = machine or Machine()
    if target.os == "darwin" and target.live:
        return mac_interfaces(mac.interface_texts())
    names = target.listdir(_FOLDER) if target.os == "linux" else []
    # /sys/class/net/bonding_masters is a file
    links = {name: NetworkLink("unknown", None) for name in names if _is_interface(target, name)}
    network = node_network(target)
    cables = {link["name"]: link for link in network if link["kind"] == "thunderbolt"}
    rdma = {link.get("interface"): link for link in network if link["kind"] == "rdma"}
    for link in network:
        if (name := link["name"]) not in links:
            continue
        cable = cables.get(_cable(target, name)) if link["kind"] == "thunderbolt-net" else None
        rate = _gbits(cable or link)
        port = rdma.get(name)
        links[name] = NetworkLink(
            _KINDS.get(link["kind"], "unknown"),
            None if rate is None else rate * 1e3,
            None if cable is None else _generation(rate),
            port["name"].partition("/")[0] if port and port["state"] == "up" else None,
        )
    return links


def _cable(machine: Machine, name: str) -> str:
    """Return the Thunderbolt connection (0-1) of an interface: its device is a service of it."""
    service = machine.realpath(f"{_FOLDER}/{name}/device").rpartition("/")[2]
    return service.partition(".")[0]


def _generation(gbits: float | None) -> int | None:
    if gbits is None or gbits < 40:
        return None
    return 5 if gbits >= 80 else 4


def mac_interfaces(texts: mac.InterfaceTexts) -> dict[str, NetworkLink]:
    """Return a Mac's interfaces of what its commands print."""
    ports = mac.parse_interfaces(texts.ports)
    speeds = mac.parse_media(texts.media)
    cables = {device: gbits for _, _, device, gbits in mac.parse_ports(texts.thunderbolt, ports)}
    links: dict[str, NetworkLink] = {}
    for port, name in ports.items():
        gbits = cables.get(f"rdma_{name}")
        generation = _generation(gbits)
        # RDMA needs Thunderbolt 5 at both ends, switched on by rdma_ctl.
        usable = generation == 5 and texts.rdma is True
        mbits = speeds.get(name) if gbits is None else gbits * 1e3
        links[name] = NetworkLink(
            _mac_kind(port), mbits, generation, f"rdma_{name}" if usable else None
        )
    return links


def _mac_kind(port: str) -> InterfaceKind:
    if port == "Wi-Fi":
        return "wifi"
    if port.startswith("Thunderbolt ") and port != "Thunderbolt Bridge":
        return "thunderbolt"
    return "ethernet" if "Ethernet" in port or "LAN" in port else "unknown"


def _is_interface(machine: Machine, name: str) -> bool:
    return machine.exists(f"{_FOLDER}/{name}/type")


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
        ports = [ThunderboltPort(*port) for port in mac.thunderbolt_ports()]
        return NodeLinks(tuple(ports), rdma_enabled=mac.rdma_enabled())
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
