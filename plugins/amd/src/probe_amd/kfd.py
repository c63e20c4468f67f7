"""Reads the KFD topology: the compute driver's own list of GPUs, kept in kernel memory.

Its files answer from the driver's tables (node_show, mem_show and iolink_show of the kernel's
amdkfd/kfd_topology.c), so reading them wakes no GPU. Nodes that a container's device cgroup hides
are listed but cannot be read. KFD's order is the order of ROCR_VISIBLE_DEVICES, not DRM's.
"""

from __future__ import annotations

from probe_core.sysfs import nodes as device_nodes
from probe_core.sysfs.numbered import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.api import LinkDoc, Machine
    from probe_core.sysfs.pci import Function
    from probe_core.sysfs.sighting import Draft


DEVICE = "/dev/kfd"
_CLASS = "/sys/class/kfd"
NODES = f"{_CLASS}/kfd/topology/nodes"
LIMIT = 16_384
"""Bytes of one properties file, which has some forty lines: room for ten times as many."""

MAX_NODES = 4096
"""Numbers that are looked at for gaps: far more than the 72 nodes of eight MI300X in CPX mode."""

PROCESSES = f"{_CLASS}/kfd/proc"
MAX_PROCESSES = 4096
"""Processes that are counted: a bound on time, a tenth of a second."""

FRAMEBUFFER_HEAPS = (1, 2)
"""heap_type of mem_banks that is the GPU's own: public and private frame buffer (hsakmttypes.h)."""

XGMI = 11
_WIRE = 15
"""type of an io_link that is XGMI (HSA_IOLINK_TYPE_XGMI of hsakmttypes.h)."""


class Node:
    """One GPU (or one partition of a GPU) as KFD lists it.

    `index` is its number among GPUs. `address` is its PCI address; on a partitioned MI300 the
    function number is the partition's number. The `properties` have its `gpu_id`, too.
    """

    __slots__ = ("address", "folder", "index", "number", "properties")

    def __init__(self, number: int, index: int, folder: str, properties: dict[str, int]) -> None:
        self.number = number
        self.index = index
        self.folder = folder
        self.properties = properties
        location = properties.get("location_id", 0)
        bus, slot = location >> 8 & 0xFF, location & 0xFF
        self.address = f"{properties.get('domain', 0):04x}:{bus:02x}:{slot >> 3:02x}.{slot & 7}"

    def get(self, name: str) -> int | None:
        """Return a property that is positive; KFD writes 0 where it does not know."""
        value = self.properties.get(name, 0)
        return value if value > 0 else None

    def part(self, address: str) -> int:
        """The number of this partition of the card at `address`; 0 of a card in one piece.

        It is in bits 28 to 31 of location_id ("drm/amdkfd: Add partition id field to location_id",
        2024); kernels before that patch write it into the PCI function.
        """
        high = self.properties.get("location_id", 0) >> 28 & 0xF
        return high or (int(self.address[-1]) if self.address != address else 0)

    @property
    def units(self) -> int | None:
        """Compute units: SIMDs by SIMDs per unit (4 to RDNA's 2)."""
        simds, per_unit = self.get("simd_count"), self.get("simd_per_cu")
        return simds // per_unit if simds and per_unit and simds % per_unit == 0 else None

    @property
    def uuid(self) -> str | None:
        """The UUID that ROCr prints (HSA_AMD_AGENT_INFO_UUID): GPU- and 16 hex digits."""
        unique = self.get("unique_id")
        return f"GPU-{unique:016x}" if unique else None


class Topology:
    """What could be read: GPU nodes in KFD's order, and the nodes that may not be read.

    ROCr skips nodes whose gpu_id gives EPERM (topology.c of libhsakmt), so `Node.index` counts the
    readable ones alone, as ROCR_VISIBLE_DEVICES does. `closed` maps the numbers of the others to
    why; `garbled` are numbers of nodes whose file holds no property. `gaps` says that nodes are
    missing in the list itself, as in a recording, which holds no file that could not be read.
    """

    __slots__ = ("closed", "gaps", "garbled", "nodes", "present")

    def __init__(self, machine: Machine) -> None:
        listed = entries(machine, NODES, "")
        self.present = bool(listed) or machine.exists(_CLASS)
        self.closed: dict[int, str] = {}
        self.garbled: list[int] = []
        self.nodes: list[Node] = []
        for number, folder in listed:
            self._add(machine, number, folder)
        # The kernel numbers nodes without gaps.
        numbers = {number for number, _ in listed}
        missing = [
            number
            for number in range(min(numbers, default=0), min(max(numbers, default=0), MAX_NODES))
            if number not in numbers
        ]
        self.gaps = bool(missing)
        self.closed |= {n: f"{NODES}/{n} is not listed, later nodes are" for n in missing}

    def _add(self, machine: Machine, number: int, folder: str) -> None:
        text, refusal = _read(machine, f"{folder}/properties")
        properties = parse(text)
        if not text:
            self.closed[number] = refusal
        elif not properties:
            self.garbled.append(number)
        elif properties.get("simd_count", 0) > 0:  # CPUs are nodes too, with simd_count 0
            gpu_id, refusal = _read(machine, f"{folder}/gpu_id")
            if gpu_id or not machine.exists(f"{folder}/gpu_id"):
                properties |= parse(f"gpu_id {gpu_id}")
                self.nodes.append(Node(number, len(self.nodes), folder, properties))
            else:
                self.closed[number] = refusal

    def of(self, address: str, cards: frozenset[str]) -> list[Node]:
        """Return the nodes of the PCI device `address`; several when it is partitioned.

        A node whose address is no card's of its own is a partition of function 0.
        """
        stem, function = address.rsplit(".", 1)
        return [
            node
            for node in self.nodes
            if node.address == address
            or (
                function == "0"
                and node.address not in cards
                and node.address.rsplit(".", 1)[0] == stem
            )
        ]


def _read(machine: Machine, path: str) -> tuple[str, str]:
    """Return (text, why there is none)."""
    try:
        text = machine.read_bytes(path, LIMIT).decode("utf-8", "replace").strip("\0 \t\r\n")
    except FileNotFoundError:
        return "", f"{path}: ENOENT"
    except (OSError, ValueError) as error:
        import errno  # here: most can be read

        reason = errno.errorcode.get(getattr(error, "errno", None) or 0, "cannot be read")
        return "", f"{path}: {reason}"
    return text, f"{path} is empty"


def parse(text: str) -> dict[str, int]:
    """Return the "name number" lines of a properties file, 64 bits each; others are left out."""
    properties = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and len(words[1]) <= 20 and words[1].isdecimal():
            properties[words[0]] = int(words[1])
    return properties


def banks(machine: Machine, node: Node) -> list[dict[str, int]]:
    """Return the memory banks of `node` that are the GPU's own (bytes, bits, MHz)."""
    tables = _tables(machine, f"{node.folder}/mem_banks")
    return [bank for bank in tables if bank.get("heap_type") in FRAMEBUFFER_HEAPS]


def io_links(machine: Machine, node: Node) -> list[dict[str, int]]:
    """Return the direct links of `node` to other nodes (bandwidths in MB/s)."""
    return [link for link in _tables(machine, f"{node.folder}/io_links") if link]


def _tables(machine: Machine, folder: str) -> list[dict[str, int]]:
    """Return the properties of each numbered entry of a node's folder."""
    paths = (path for _, path in entries(machine, folder, ""))
    return [parse(machine.read(f"{path}/properties", LIMIT) or "") for path in paths]


def processes(machine: Machine, nodes: list[Node]) -> list[str] | None:
    """Return the folders of the processes that use KFD; None where it lists none, or no node."""
    if not any(node.get("gpu_id") for node in nodes) or not machine.exists(PROCESSES):
        return None
    return [f"{PROCESSES}/{pid}" for pid in machine.listdir(PROCESSES)[:MAX_PROCESSES]]


def holders(machine: Machine, node: Node, using: list[str] | None) -> int | None:
    """Return how many of the processes `using` KFD hold memory of `node`; None when unknown."""
    gpu_id = node.get("gpu_id")
    if using is None or gpu_id is None:
        return None
    return sum(1 for folder in using if machine.read_int(f"{folder}/vram_{gpu_id}"))


def xgmi(machine: Machine, node: Node, owners: Mapping[int, str]) -> list[LinkDoc]:
    """Return one XGMI link per peer GPU of `node`; `owners` maps KFD node numbers to device ids.

    Bandwidths are KFD's, one direction: min_bandwidth is one link, max_bandwidth all of them
    together (amdkfd/kfd_crat.c). KFD writes 0 where it does not know. A peer that is reached
    through other GPUs alone has a `count` of 0.
    """
    own = owners.get(node.number)
    links: dict[str, list[LinkDoc]] = {}
    for entry in io_links(machine, node):
        peer = owners.get(entry.get("node_to", -1))
        if entry.get("type") == XGMI and peer and peer != own:
            links.setdefault(peer, []).append(_link(peer, entry))
    # A partitioned peer shows once per partition; its widest entry is the wire.
    return [max(links[peer], key=_rate) for peer in sorted(links)]


def _link(peer: str, entry: Mapping[str, int]) -> LinkDoc:
    link: LinkDoc = {"kind": "xgmi", "peer": peer}
    if _hops(entry) > 1:
        link["count"] = 0
        return link
    single, total = entry.get("min_bandwidth", 0), entry.get("max_bandwidth", 0)
    if total:
        link["bandwidth"] = total * 1_000_000
    if single and total and total % single == 0:
        link["count"] = total // single
    return link


def _hops(entry: Mapping[str, int]) -> int:
    """Return how many wires lie between two cards: KFD lists each card of a hive.

    A wire weighs 15. Within a card and between partitions other weights count (amdkfd/kfd_crat.c,
    kfd_fill_gpu_xgmi_link_to_gpu).
    """
    hops, rest = divmod(entry.get("weight", 0), _WIRE)
    return hops if hops and not rest else 1


def _rate(link: LinkDoc) -> float:
    return link.get("bandwidth") or 0


# Which GPUs this process was given, judged from KFD's list, and which nodes it opens.
#
# KFD lists all nodes to everybody and refuses to read those whose render node the device cgroup
# denies (kfd_devcgroup_check_permission of amdkfd/kfd_priv.h, EPERM). A closed node does not say
# which card it is, so cards without a readable node are matched by number and model.


class Grants:
    """What KFD's list says of each card that amdgpu drives; `own` maps addresses to nodes."""

    __slots__ = ("_closed", "_topology", "_unclear")

    def __init__(
        self,
        topology: Topology,
        cards: list[Function],
        own: Mapping[str, list[Node]],
        live: bool,
    ) -> None:
        driven = [card for card in cards if card.driver == "amdgpu"]
        missing = [card for card in driven if not own[card.address]]
        models = {card.product for card in driven if own[card.address]}
        alike = [card for card in missing if card.product in models]
        count = len(topology.closed)
        if not live and (topology.gaps or not count):
            # A recording has no file that could not be read: there the models must do.
            count = max(count, len(alike))
        closed = next((group for group in (missing, alike) if len(group) <= count), [])
        self._topology = topology
        self._closed = frozenset(card.address for card in closed)
        unmatched = count > len(closed) and closed is not missing
        self._unclear = bool(topology.garbled) or unmatched

    def put_nodes(self, draft: Draft, card: Function, own: list[Node], split: bool) -> None:
        """Put the device nodes of `card` into `draft`.

        Render nodes are left out where the grant is what is missing: of a partitioned card, whose
        parts have them, and of a card beside others that were given. Where no GPU at all was given,
        the missing nodes are what a person must add.
        """
        closed = card.address in self._closed
        elsewhere = (split and own) or (closed and self._topology.nodes)
        render = [] if elsewhere else device_nodes.paths(draft.fields["node_index"])
        # Of the nodes of a card that KFD leaves out, /dev/kfd is none.
        left_out = self._topology.present and not (own or closed or self._unclear)
        draft.put("nodes", ([] if left_out else [DEVICE]) + render)

    def add_fact(self, draft: Draft, card: Function, own: list[Node]) -> None:
        """Add what KFD's list says of `card` to `draft`."""
        if own:
            draft.fact("granted", "ok", f"{own[0].folder}/properties can be read")
        elif not self._topology.present:
            # The kernel lacks CONFIG_HSA_AMD, or a sandbox hides it: the core knows sandboxes.
            draft.fact("node", "broken", f"{_CLASS} is absent", "kfd-missing")
        elif card.address in self._closed:
            draft.fact("granted", "broken", self._why_closed(), "kfd-node-closed")
        elif self._unclear:
            reason = f"{self._why_closed()}, and nothing tells whether it is this GPU"
            draft.fact("granted", "unknown", reason)
        else:
            reason = f"no node below {NODES} has the PCI address {card.address}"
            draft.fact("runtime", "broken", reason, "kfd-no-gpu")

    def _why_closed(self) -> str:
        closed, garbled = self._topology.closed, self._topology.garbled
        if closed:
            more = f" ({len(closed)} nodes in all)" if len(closed) > 1 else ""
            return next(iter(closed.values())) + more
        if garbled:
            return f"{NODES}/{garbled[0]}/properties holds no property"
        return f"{NODES} lists GPUs of this model, and not this one"
