"""Reports every AMD GPU and APU from sysfs and KFD, opening no device and waking none."""

from __future__ import annotations

from probe_amd import advice, gfx, kfd, links, memory, partitions, pci
from probe_amd.facts import Facts
from probe_core.api import hookimpl, not_applicable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_amd.kfd import Node, Topology
    from probe_amd.pci import Card
    from probe_core.api import Machine, NotApplicable, Request

ASLEEP = "asleep (runtime-suspended): not read, so that the card is not woken"


@hookimpl
def probe_devices(request: Request) -> NotApplicable | Iterator[dict[str, Any]]:
    """Answer with AMD's GPUs, their partitions, and findings on those that cannot compute."""
    machine = request.machine
    cards = pci.cards(machine, request.bus)
    if not cards:
        return not_applicable("no AMD GPU on the PCI bus")
    return _all(machine, cards, kfd.Topology(machine))


def _all(machine: Machine, cards: list[Card], topology: Topology) -> Iterator[dict[str, Any]]:
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
        if said := advice.on_driver(card):
            yield said
        minors += [minor for node in own if (minor := node.get("drm_render_minor"))]
    if said := advice.on_kfd(topology, cards):
        yield said
    yield from advice.on_nodes(machine, topology, minors)


def _device(
    machine: Machine,
    card: Card,
    nodes: list[Node],
    owners: Mapping[int, str],
    driver: Mapping[str, str],
) -> dict[str, Any]:
    facts = Facts(ids=[card.id], kind="gpu", vendor="amd", pci=card.pci, power_state=card.power)
    numa = machine.read_int(f"{card.folder}/numa_node")
    if numa is not None and numa >= 0:  # -1: the firmware does not say
        facts.fields["numa_node"] = numa
    facts.fields["node_index"] = _indexes(machine, card, nodes)
    if card.driver != "amdgpu":
        if card.driver:
            facts.fields["driver"] = {"name": card.driver}
        why = f"bound to {card.driver}, not to amdgpu" if card.driver else "no driver is bound"
        for field in ("name", "units", "memory.total"):
            facts.say(field, None, why)
        return facts.sighting()
    facts.fields["driver"] = dict(driver)
    _identify(machine, facts, card, nodes)
    shared = _compute(machine, facts, card, nodes)
    memory.tell(machine, facts, card.folder, nodes, shared, card.asleep)
    _tell_links(machine, facts, card, nodes, owners)
    return facts.sighting()


def _identify(machine: Machine, facts: Facts, card: Card, nodes: list[Node]) -> None:
    """Name and UUID. Only server cards carry a product name; chipdb names the rest by PCI id."""
    name = None if card.asleep else machine.read(f"{card.folder}/product_name")
    facts.say("name", name, ASLEEP if card.asleep else "amdgpu gives no product name")
    unique = None if card.asleep else machine.read(f"{card.folder}/unique_id")
    uuid = _uuid(unique) or next((node.uuid for node in nodes if node.uuid), None)
    if uuid:
        facts.fields["ids"].append(f"uuid:{uuid}")


def _uuid(unique_id: str | None) -> str | None:
    """Return the form that ROCr prints and ROCR_VISIBLE_DEVICES takes."""
    try:
        number = int(unique_id or "", 16)
    except ValueError:
        return None
    return f"GPU-{number:016x}" if 0 < number < 1 << 64 else None


def _compute(machine: Machine, facts: Facts, card: Card, nodes: list[Node]) -> bool | None:
    """Gfx target, units and clocks; returns whether the GPU shares the processor's memory."""
    node = nodes[0] if nodes else None
    target = node.get("gfx_target_version") if node else None
    name = gfx.from_target(target) if target else None
    if not name and not card.asleep:
        name = gfx.from_discovery(machine, card.folder)
    why = "KFD does not list this GPU" if not node else "KFD leaves it out"
    facts.say("gfx", name, f"{why}, and there is no IP discovery table")
    counts = [one.units for one in nodes]
    units = sum(count or 0 for count in counts) if counts and all(counts) else None
    facts.say("units", units, why if not node else "KFD's SIMD counts are missing or do not fit")
    facts.say("cores", units and units * 64, "the number of compute units is not known")
    clock = node.get("max_engine_clk_fcompute") if node else None
    facts.say("clocks.max_mhz", clock, why)
    vendor = None if card.asleep else machine.read(f"{card.folder}/mem_info_vram_vendor")
    cpus = node.properties.get("cpu_cores_count") if node else None
    shared = gfx.is_integrated(name, card.pci.get("id"), vendor, cpus)
    if shared is None and node and memory.has_stacks(machine, node):
        shared = False
    if node:
        _only_of_kfd(machine, facts, nodes, shared)
    if not card.asleep and (modes := partitions.modes(machine, card)):
        facts.fields.setdefault("extra", {}).update(modes)
    return shared


def _only_of_kfd(machine: Machine, facts: Facts, nodes: list[Node], shared: bool | None) -> None:
    """What KFD alone knows. The clock is the driver's maximum, which is not the boost clock."""
    if len(nodes) == 1:  # of a partitioned card HIP sees the partitions, not the card
        facts.fields["backends"] = ["hip"]
    memory.tell_bandwidth(machine, facts, nodes[0], shared)
    extra = facts.fields.setdefault("extra", {})
    if "max_mhz" in facts.fields.get("clocks", {}):
        extra["clock_source"] = "driver maximum (KFD max_engine_clk_fcompute)"
    if dies := sum(node.properties.get("num_xcc", 0) for node in nodes):
        extra["xcds"] = dies
    if len(nodes) == 1 and (busy := kfd.processes(machine, nodes[0])) is not None:
        facts.fields["processes"] = busy


def _tell_links(
    machine: Machine, facts: Facts, card: Card, nodes: list[Node], owners: Mapping[int, str]
) -> None:
    found = [] if card.asleep else [hop for hop in (pci.link(machine, card),) if hop]
    # All partitions of a card have the same wires: the first one's list is enough.
    found += links.xgmi(machine, nodes[0], owners) if nodes else []
    facts.say("links", found, ASLEEP if card.asleep else "the card's link files say nothing")


def _indexes(machine: Machine, card: Card, nodes: list[Node]) -> dict[str, int]:
    found = {}
    for name in machine.listdir(f"{card.folder}/drm"):
        for prefix, key in (("card", "drm_card"), ("renderD", "drm_render")):
            if name.startswith(prefix) and name[len(prefix) :].isdecimal():
                found[key] = int(name[len(prefix) :])
    return found | ({"kfd": nodes[0].index} if len(nodes) == 1 else {})


def _driver(machine: Machine) -> dict[str, str]:
    """Return amdgpu's version: its own when it is the out-of-tree module, else the kernel's."""
    found = {"name": "amdgpu"}
    if own := machine.read("/sys/module/amdgpu/version"):
        found |= {"version": own, "version_of": "module"}
    elif kernel := machine.read("/proc/sys/kernel/osrelease"):
        found |= {"version": kernel, "version_of": "kernel"}
    if rocm := machine.read("/opt/rocm/.info/version"):
        found["rocm"] = rocm
    return found
