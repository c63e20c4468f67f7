"""Reports every AMD GPU and APU from sysfs and KFD, opening no device and waking none."""

from __future__ import annotations

from probe_amd import advice, gfx, kfd, links, memory, partitions
from probe_core.api import hookimpl, not_applicable
from probe_core.sysfs import drivers, drm, pci, pcie
from probe_core.sysfs.sighting import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_amd.kfd import Node, Topology
    from probe_core.api import LinkDoc, Machine, NotApplicable, Request
    from probe_core.sysfs.pci import Function

AMD = "1002"
# PCI base classes: displays, and processing accelerators. A card's sound function (04) is neither.
_CLASSES = ("03", "12")

ASLEEP = "asleep (runtime-suspended): not read, so that the card is not woken"


@hookimpl
def probe_devices(request: Request) -> NotApplicable | Iterator[dict[str, Any]]:
    """Answer with AMD's GPUs, their partitions, and findings on those that cannot compute."""
    machine = request.machine
    cards = pci.functions(machine, request.bus, vendors=(AMD,), classes=_CLASSES)
    if not cards:
        return not_applicable("no AMD GPU on the PCI bus")
    return _all(machine, cards, kfd.Topology(machine))


def _all(machine: Machine, cards: list[Function], topology: Topology) -> Iterator[dict[str, Any]]:
    addresses = frozenset(card.address for card in cards)
    nodes = {card.address: topology.of(card.address, addresses) for card in cards}
    owners = {node.number: f"pci:{address}" for address, own in nodes.items() for node in own}
    driver = _driver(machine)
    minors = []
    for card in cards:
        own = nodes[card.address]
        yield _device(machine, card, own, owners, driver)
        if len(own) > 1:
            yield from (partitions.child(machine, card, own, n) for n in range(len(own)))
        if finding := advice.on_driver(card):
            yield finding
        minors += [minor for node in own if (minor := node.get("drm_render_minor"))]
    if finding := advice.on_kfd(topology, cards):
        yield finding
    yield from advice.on_nodes(machine, topology, minors)


def _device(
    machine: Machine,
    card: Function,
    nodes: list[Node],
    owners: Mapping[int, str],
    driver: Mapping[str, str],
) -> dict[str, Any]:
    draft = Draft(
        ids=[card.id],
        kind="gpu",
        vendor="amd",
        pci=card.pci,
        power_state=card.power_state,
        node_index=_indexes(machine, card, nodes),
    )
    draft.put("numa_node", pci.numa_node(machine, card.folder))
    if card.driver != "amdgpu":
        draft.put("driver.name", card.driver)
        reason = f"bound to {card.driver}, not to amdgpu" if card.driver else "no driver is bound"
        for field in ("name", "units", "memory.total"):
            draft.put(field, None, reason)
        return draft.sighting()
    draft.fields["driver"] = dict(driver)
    _identify(machine, draft, card, nodes)
    shared = _compute(machine, draft, card, nodes)
    memory.describe(machine, draft, card.folder, nodes, shared, card.asleep)
    _connect(machine, draft, card, nodes, owners)
    return draft.sighting()


def _identify(machine: Machine, draft: Draft, card: Function, nodes: list[Node]) -> None:
    """Name and UUID. Only server cards carry a product name; chipdb names the rest by PCI id."""
    name = None if card.asleep else machine.read(f"{card.folder}/product_name")
    draft.put("name", name, ASLEEP if card.asleep else "amdgpu gives no product name")
    unique = None if card.asleep else machine.read(f"{card.folder}/unique_id", 64)
    uuid = _uuid(unique) or next((node.uuid for node in nodes if node.uuid), None)
    if uuid:
        draft.fields["ids"].append(f"uuid:{uuid}")


def _uuid(unique_id: str | None) -> str | None:
    """Return the form that ROCr prints and ROCR_VISIBLE_DEVICES takes."""
    try:
        number = int(unique_id or "", 16)
    except ValueError:
        return None
    return f"GPU-{number:016x}" if 0 < number < 1 << 64 else None


def _compute(machine: Machine, draft: Draft, card: Function, nodes: list[Node]) -> bool | None:
    """Gfx target, units and clocks; returns whether the GPU shares the processor's memory."""
    node = nodes[0] if nodes else None
    target = node.get("gfx_target_version") if node else None
    name = gfx.from_target(target) if target else None
    if not name and not card.asleep:
        name = gfx.from_discovery(machine, card.folder)
    reason = "KFD leaves it out" if node else "KFD does not list this GPU"
    draft.put("gfx", name, f"{reason}, and there is no IP discovery table")
    counts = [member.units for member in nodes]
    units = sum(count or 0 for count in counts) if counts and all(counts) else None
    draft.put("units", units, "KFD's SIMD counts are missing or do not fit" if node else reason)
    draft.put("cores", units and units * 64, "the number of compute units is not known")
    draft.put("clocks.max_mhz", node and node.get("max_engine_clk_fcompute"), reason)
    vendor = None if card.asleep else machine.read(f"{card.folder}/mem_info_vram_vendor")
    cpus = node.properties.get("cpu_cores_count") if node else None
    shared = gfx.is_integrated(name, card.pci.get("id"), vendor, cpus)
    if shared is None and node and memory.has_stacks(machine, node):
        shared = False
    if node:
        _only_of_kfd(machine, draft, nodes, shared)
    if not card.asleep:
        for mode, text in partitions.modes(machine, card).items():
            draft.note(mode, text)
    return shared


def _only_of_kfd(machine: Machine, draft: Draft, nodes: list[Node], shared: bool | None) -> None:
    """What KFD alone knows. The clock is the driver's maximum, which is not the boost clock."""
    if len(nodes) == 1:  # of a partitioned card HIP sees the partitions, not the card
        draft.fields["backends"] = ["hip"]
    memory.describe_bandwidth(machine, draft, nodes[0], shared)
    if "max_mhz" in draft.fields.get("clocks", {}):
        draft.note("clock_source", "driver maximum (KFD max_engine_clk_fcompute)")
    draft.note("xcds", sum(node.properties.get("num_xcc", 0) for node in nodes) or None)
    if len(nodes) == 1:
        draft.put("processes", kfd.processes(machine, nodes[0]))


def _connect(
    machine: Machine,
    draft: Draft,
    card: Function,
    nodes: list[Node],
    owners: Mapping[int, str],
) -> None:
    wires: list[LinkDoc] = pcie.links(machine, card.folder)
    # All partitions of a card have the same wires: the first one's list is enough.
    wires += links.xgmi(machine, nodes[0], owners) if nodes else []
    draft.put("links", wires, ASLEEP if card.asleep else "the card's link files give no link")


def _indexes(machine: Machine, card: Function, nodes: list[Node]) -> dict[str, int]:
    index = drm.minors(machine, card.folder)
    return index | ({"kfd": nodes[0].index} if len(nodes) == 1 else {})


def _driver(machine: Machine) -> dict[str, str]:
    driver = {"name": "amdgpu"} | drivers.version(machine, "amdgpu")
    if rocm := machine.read("/opt/rocm/.info/version", 256):
        driver["rocm"] = rocm
    return driver
