"""Describes one AMD GPU: identity, compute units, memory, links, power, and what KFD says of it."""

from __future__ import annotations

from probe_amd import gfx, kfd, memory
from probe_core.sysfs.numbered import entries
from probe_core.sysfs.sighting import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_amd.kfd import Grants, Node
    from probe_amd.partitions import Layout
    from probe_core.api import LinkDoc, Machine
    from probe_core.sysfs.pci import Function

ASLEEP = "asleep (runtime-suspended): not read, so that the card is not woken"
_MODULE = "/sys/module/amdgpu"
_POWER_FILES = {"limit_watts": "cap", "default_watts": "cap_default", "max_watts": "cap_max"}
"""Field → hwmon's power1 file, in microwatts (amdgpu_pm.c)."""


class System:
    """What is the same for all cards: KFD's grants, the owners of its nodes, amdgpu's version.

    `using` are the folders of the processes that use KFD, None where it does not list them.
    """

    __slots__ = ("driver", "grants", "owners", "using")

    def __init__(
        self,
        grants: Grants,
        owners: Mapping[int, str],
        using: list[str] | None,
        driver: Mapping[str, str],
    ) -> None:
        self.grants = grants
        self.owners = owners
        self.using = using
        self.driver = driver


def passive(machine: Machine, function: Function) -> dict[str, Any]:
    """Return the sighting of a card that must not be asked: only what the PCI core remembers."""
    draft = _start(machine, function)
    draft.put("driver.name", function.driver)
    draft.left_alone()
    return draft.sighting()


def describe(
    machine: Machine, function: Function, nodes: list[Node], layout: Layout, system: System
) -> dict[str, Any]:
    """Return the sighting of a card; `nodes` are its readable nodes in KFD."""
    draft = _start(machine, function)
    draft.put("numa_node", function.numa_node(machine))
    if function.driver != "amdgpu":
        return _not_driven(machine, draft, function)
    if len(nodes) == 1 and not layout.split:
        draft.put("node_index.kfd", nodes[0].index)
    draft.fields["driver"] = dict(system.driver)
    system.grants.put_nodes(draft, function, nodes, layout.split)
    if layout.split and nodes:
        draft.fact("granted", "broken", layout.evidence(function), "partition-mode")
    else:
        system.grants.add_fact(draft, function, nodes)
    for mode, text in layout.modes.items():
        draft.note(mode, text)
    _identify(machine, draft, function, nodes)
    shared = _compute(machine, draft, function, nodes, layout)
    if nodes and not layout.split:  # of a partitioned card HIP sees the partitions, not the card
        draft.fields["backends"] = ["hip"]
        draft.put("processes", kfd.holders(machine, nodes[0], system.using))
    whole = nodes if layout.complete else []
    memory.describe(machine, draft, function.folder, whole, shared, function.asleep)
    _add_power(machine, draft, function)
    _connect(machine, draft, function, nodes, system.owners)
    return draft.sighting()


def _start(machine: Machine, function: Function) -> Draft:
    return Draft(
        ids=[function.id],
        kind="gpu",
        vendor="amd",
        pci=function.pci,
        power_state=function.power_state,
        node_index=function.node_index(machine),
    )


def _not_driven(machine: Machine, draft: Draft, function: Function) -> dict[str, Any]:
    draft.put("driver.name", function.driver)
    _add_driver_fact(machine, draft, function)
    reason = f"bound to {function.driver}, not to amdgpu"
    for field in ("name", "units", "memory.total"):
        draft.put(field, None, reason if function.driver else "no driver is bound")
    return draft.sighting()


def _add_driver_fact(machine: Machine, draft: Draft, card: Function) -> None:
    """Say in `draft` why amdgpu does not drive a card, as far as the prober alone can know.

    Modules on disk, blacklists, Secure Boot and passthrough are the core's to judge.
    """
    link = f"{card.folder}/driver"
    if card.driver == "radeon":
        # radeon has no compute interface; amdgpu takes GCN 1 and 2 cards only when told to.
        draft.fact("driver", "broken", f"{link} is radeon", "radeon-bound")
    elif not card.driver and machine.exists(_MODULE):
        evidence = f"{link} is absent, though {_MODULE} is there"
        draft.fact("driver", "broken", evidence, "amdgpu-refused")


def _identify(machine: Machine, draft: Draft, function: Function, nodes: list[Node]) -> None:
    """Name and UUID. Only server cards carry a product name; chipdb names the rest by PCI id."""
    asleep = function.asleep
    name = None if asleep else machine.read(f"{function.folder}/product_name")
    draft.put("name", name, ASLEEP if asleep else "amdgpu gives no product name")
    unique = None if asleep else machine.read(f"{function.folder}/unique_id", 64)
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


def _compute(
    machine: Machine, draft: Draft, function: Function, nodes: list[Node], layout: Layout
) -> bool | None:
    """Gfx target, units and clocks; returns whether the GPU shares the processor's memory."""
    node = nodes[0] if nodes else None
    target = node.get("gfx_target_version") if node else None
    name = gfx.from_target(target) if target else None
    if not name and not function.asleep:
        name = gfx.from_discovery(machine, function.folder)
    reason = "KFD leaves it out" if node else "KFD does not list this GPU to this process"
    draft.put("gfx", name, f"{reason}, and there is no IP discovery table")
    units = layout.units
    why = "KFD's SIMD counts are missing or do not fit" if layout.complete else layout.why_part
    draft.put("units", units, why if node else reason)
    draft.put("cores", units and units * 64, "the number of compute units is not known")
    draft.put("clocks.max_mhz", node and node.get("max_engine_clk_fcompute"), reason)
    shared = memory.is_shared(machine, function, name, node)
    if node:
        _only_of_kfd(machine, draft, nodes, layout, shared)
    return shared


def _only_of_kfd(
    machine: Machine, draft: Draft, nodes: list[Node], layout: Layout, shared: bool | None
) -> None:
    """What KFD alone knows. The clock is the driver's maximum, which is not the boost clock."""
    memory.describe_bandwidth(machine, draft, nodes[0], shared)
    if "max_mhz" in draft.fields.get("clocks", {}):
        draft.note("clock_source", "driver maximum (KFD max_engine_clk_fcompute)")
    if layout.complete:
        draft.note("xcds", sum(node.properties.get("num_xcc", 0) for node in nodes) or None)


def _connect(
    machine: Machine,
    draft: Draft,
    function: Function,
    nodes: list[Node],
    owners: Mapping[int, str],
) -> None:
    wires: list[LinkDoc] = function.links(machine)
    # All partitions of a card have the same wires: the first one's list is enough.
    wires += kfd.xgmi(machine, nodes[0], owners) if nodes else []
    draft.put("links", wires, ASLEEP if function.asleep else "the card's link files give no link")


def _add_power(machine: Machine, draft: Draft, card: Function) -> None:
    """Put the limits of an awake card into `draft`, and that it is below its default.

    Reading hwmon's files wakes a sleeping card.
    """
    if card.asleep:
        return
    for _, folder in entries(machine, f"{card.folder}/hwmon", "hwmon")[:1]:
        limits = {
            field: microwatts / 1e6
            for field, name in _POWER_FILES.items()
            if (microwatts := machine.read_int(f"{folder}/power1_{name}")) and microwatts > 0
        }
        draft.put("power", limits)
        limit, default = limits.get("limit_watts"), limits.get("default_watts")
        if limit and default and limit < default:
            evidence = f"{folder}/power1_cap is {limit:g} W, its default {default:g} W"
            draft.fact("responding", "broken", evidence, "power-capped")
