"""How near two devices are: what data between them crosses, in the words of `nvidia-smi topo -m`.

Pure functions over a report, for all vendors: direct links first, then PCIe bridges, then NUMA
nodes. NVML's levels (nvmlGpuTopologyLevel_t) have the same words for what hwloc finds in /sys.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from probe_core.model.document import DeviceDoc, LinkDoc, NetworkDoc, ReportDoc

    Item = TypeVar("Item")

UNKNOWN = "–"

MEANINGS = {
    "NV#": "NV18: 18 NVLinks",
    "XGMI#": "XGMI1: one xGMI link",
    "XGMI": "XGMI: xGMI through other GPUs",
    "PIX": "PIX: one PCIe switch",
    "PXB": "PXB: several PCIe switches",
    "PHB": "PHB: the host bridge of a CPU",
    "NODE": "NODE: within a NUMA node",
    "SYS": "SYS: between NUMA nodes",
    UNKNOWN: f"{UNKNOWN}: not known",
}
"""What each word means; ``#`` stands for a number of links."""

_LINKS = {"nvlink": "NV", "xgmi": "XGMI"}


class Place(NamedTuple):
    """Where a device hangs: `route` has the root bus (``pci0000:00``) and the bridges below it.

    The route ends above the device itself, and is empty where it is not known. `links` are the
    direct ones, as the report has them.
    """

    id: str
    route: tuple[str, ...] = ()
    numa_node: int | None = None
    links: Sequence[LinkDoc] = ()


def place_of(device: DeviceDoc) -> Place:
    """Return the place of a device of a report."""
    # Whoever reads the bus lists all bridges there are: none is the root bus itself.
    known = bool(device.get("bridges")) or "bus" in device["seen_by"]
    route = _route(device["id"], device.get("bridges") or ()) if known else ()
    return Place(device["id"], route, device.get("numa_node"), device["links"])


class Card(NamedTuple):
    """A network card: `label` ``NIC 0``, the `names` of its ports and interfaces, its place."""

    label: str
    names: tuple[str, ...]
    place: Place


def network_places(report: ReportDoc) -> list[Card]:
    """Return the network cards on PCI buses, by address; RDMA ports before interfaces.

    An interface and the RDMA ports of the same hardware are one card.
    """
    found: dict[str, list[NetworkDoc]] = defaultdict(list)
    for link in report["node"].get("network") or ():
        if (identity := link.get("device")) and identity.startswith("pci:"):
            found[identity].append(link)
    cards = []
    for number, (identity, links) in enumerate(sorted(found.items())):
        links.sort(key=lambda link: link["kind"] != "rdma")
        route = _route(identity, links[0].get("bridges") or ())
        place = Place(identity, route, links[0].get("numa_node"))
        cards.append(Card(f"NIC {number}", tuple(link["name"] for link in links), place))
    return cards


def located(places: Iterable[Place], only: int | None) -> list[Place]:
    """Return the places, those of an unknown NUMA node in the `only` one of their machine."""
    return [
        place._replace(numa_node=only) if place.numa_node is None else place for place in places
    ]


def _route(identity: str, bridges: Sequence[str]) -> tuple[str, ...]:
    """Return root bus and bridges; the functions on a root bus have its number."""
    kind, _, address = identity.partition(":")
    if kind != "pci":
        return ()
    highest = bridges[-1] if bridges else address
    return (f"pci{highest.rpartition(':')[0]}", *reversed(bridges))


def only_node(report: ReportDoc) -> int | None:
    """Return the NUMA node of a machine that has one; None where it has several or none is known.

    Firmware of such machines often leaves out where a device is: it is in the only node.
    """
    nodes: set[int] = set()
    for device in report["devices"]:
        node = device.get("numa_node")
        nodes.update(device.get("numa_nodes") or ([] if node is None else [node]))
    return next(iter(nodes)) if len(nodes) == 1 else None


def distance(first: Place, second: Place) -> str:
    """Return what data between two devices crosses: ``NV18``, ``PIX``, ``SYS`` … or a dash."""
    if first.id == second.id:
        return "X"
    if (lanes := lanes_between(first, second)) is not None:
        kind, count = lanes
        return f"{_LINKS[kind]}{count or ''}"
    return _over_pcie(first.route, second.route) or _over_numa(first, second)


def matrix(places: Sequence[Place]) -> tuple[tuple[str, ...], ...]:
    """Return the words of each row; see `distance`."""
    return tuple(tuple(distance(row, column) for column in places) for row in places)


def meanings(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return what the words of a matrix mean, the nearest first."""
    words = {word for row in rows for word in row}
    stems = {word.rstrip("0123456789") + "#" * word[-1:].isdecimal() for word in words}
    return [text for stem, text in MEANINGS.items() if stem in stems]


def lanes_between(first: Place, second: Place) -> tuple[str, int] | None:
    """Return the kind of the links between two devices and how many there are; None without.

    Through a switch each reaches the other with all of its links. Through other devices there is
    none of its own: 0.
    """
    for kind in _LINKS:
        peers = {link.get("peer") for link in first.links if link["kind"] == kind}
        direct = _count(first, kind, lambda link: link.get("peer") == second.id)
        switched = min(_to_switches(first, kind), _to_switches(second, kind))
        if direct or switched or second.id in peers:
            return kind, direct or switched
    return None


def _to_switches(place: Place, kind: str) -> int:
    return _count(place, kind, lambda link: link.get("to") == "switch")


def _count(place: Place, kind: str, counts: Callable[[LinkDoc], bool]) -> int:
    links = (link for link in place.links if link["kind"] == kind and counts(link))
    return sum(links_of(link) for link in links)


def links_of(link: LinkDoc) -> int:
    """Return how many links an entry stands for: one where nobody counted."""
    count = link.get("count")
    return 1 if count is None else count


def _over_pcie(first: Sequence[str], second: Sequence[str]) -> str:
    """Return the word for two devices below one root bus; "" where NUMA nodes decide."""
    if not first or not second or first[0] != second[0]:
        return ""
    shared = 0
    for names in zip(first, second, strict=False):
        if len({*names}) > 1:
            break
        shared += 1
    if shared == 1:
        return "PHB"
    # Below a switch's upstream port each device has a port of that switch, and no more.
    return "PIX" if max(len(first), len(second)) - shared <= 1 else "PXB"


def _over_numa(first: Place, second: Place) -> str:
    if first.numa_node is None or second.numa_node is None:
        return UNKNOWN
    return "NODE" if first.numa_node == second.numa_node else "SYS"


class Group(NamedTuple):
    """A bridge that several devices share, at a `depth` of 0 for a root port, and what is below."""

    address: str
    depth: int
    groups: tuple[Group, ...]
    places: tuple[Place, ...]


def shared_bridges(
    places: Sequence[Place], depth: int = 0
) -> tuple[tuple[Group, ...], tuple[Place, ...]]:
    """Return the bridges that several places share, nested, and the places that share none."""
    below: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        bridges = place.route[1:]
        below[bridges[depth] if depth < len(bridges) else place.id].append(place)
    groups: list[Group] = []
    alone: list[Place] = []
    for address, members in below.items():
        if len(members) == 1:
            alone += members
            continue
        inner, loose = shared_bridges(members, depth + 1)
        if len(inner) == 1 and not loose:  # a bridge that leads to one other alone
            groups += inner
        else:
            groups.append(Group(address, depth, inner, loose))
    return tuple(groups), tuple(alone)


def bridge_noun(depth: int) -> str:
    """Return what a bridge at a depth below the root bus is called."""
    return "root port" if depth == 0 else "PCIe switch" if depth % 2 else "PCIe port"


_FIRST_UPI = 85
"""Model of family 6 of the first Xeon with UPI, Skylake-SP (0x55; Linux, intel-family.h).

Those before it that work in pairs have lower numbers, up to Broadwell-EP's 79, and QPI.
"""

_FIRST_XGMI = 0x17
"""Family of the first EPYC (Zen), whose sockets xGMI links; those of older ones HyperTransport."""


def interconnect(report: ReportDoc) -> str | None:
    """Return the link between processor packages: UPI, QPI or xGMI; None where it is not known.

    None, too, on a machine of one package. By vendor, family and model of the processors.
    """
    cpus = [device for device in report["devices"] if device["kind"] == "cpu"]
    if len(cpus) < 2:
        return None
    facts = cpus[0].get("cpu") or {}
    family, model = facts.get("family"), facts.get("model")
    if not isinstance(family, int) or not isinstance(model, int):
        return None
    if cpus[0]["vendor"] == "amd":
        return "xGMI" if family >= _FIRST_XGMI else None
    if cpus[0]["vendor"] != "intel" or family != 6:
        return None
    return "UPI" if model >= _FIRST_UPI else "QPI"
