"""Turns the partitions of an MI300 (DPX … CPX modes) into child devices of their card.

In these modes KFD lists several nodes for one PCI device; only the first is a PCI function, the
others hang on platform devices (amdgpu_xcp_N), so a partition's id is the card's and its number.
A container may be given a single one: then nothing but the card's mode and KFD's numbering say
that it is a part.
"""

from __future__ import annotations

from probe_amd import gfx, kfd
from probe_core.sysfs import nodes as device_nodes
from probe_core.sysfs.sighting import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from probe_amd.kfd import Node, Topology
    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function

SHARED = "a partition shares the card's memory bus"

# Compute partition mode → partitions of a card (amdgpu_xcp.h); of CPX each XCD is one.
_COUNTS = {"SPX": 1, "DPX": 2, "TPX": 3, "QPX": 4}

# PCI id → XCDs (AMD's data sheets; MI308X: 20 of its 80 units are a node in CPX, in the test data
# of ROCm/k8s-device-plugin): MI300A, MI300X and its HF variant, MI308X, MI325X, MI350X, MI355X.
_XCDS = {"74a0": 6, "74a1": 8, "74a9": 8, "74a2": 4, "74a5": 8, "75a0": 8, "75a3": 8}


class Layout:
    """How a card is cut: `split` into partitions or not, `count` of them (None: not known).

    `units` are the whole card's, known only where all of its nodes can be read (`complete`).
    """

    __slots__ = ("complete", "count", "modes", "nodes", "split", "units")

    def __init__(
        self, modes: Mapping[str, str], nodes: list[Node], count: int | None, split: bool
    ) -> None:
        self.modes = modes
        self.nodes = nodes
        self.count = count
        self.split = split
        self.complete = len(nodes) == count
        units = [node.units for node in nodes]
        known = self.complete and bool(units) and all(units)
        self.units = sum(number or 0 for number in units) if known else None

    @property
    def why_part(self) -> str:
        """Why nothing can be summed up over the nodes that can be read."""
        return f"KFD shows this process {len(self.nodes)} of {self.count or 'several'} partitions"

    @property
    def profile(self) -> str | None:
        """The modes as AMD's own tools join them: "cpx_nps4"; None where they are not known."""
        compute, memory = (self.modes.get(f"{kind}_partition") for kind in ("compute", "memory"))
        return f"{compute}_{memory}".lower() if compute and memory else None

    def evidence(self, card: Function) -> str:
        """Return what says that programs are given parts of the card, and not the card."""
        if mode := self.modes.get("compute_partition"):
            return f"{card.folder}/current_compute_partition is {mode}"
        node = self.nodes[0]
        return f"{node.folder}/properties: location_id is partition {node.part(card.address)}"


def layouts(
    machine: Machine,
    cards: list[Function],
    nodes: Mapping[str, list[Node]],
    topology: Topology,
    avoid: Collection[str],
) -> dict[str, Layout]:
    """Return the layout of each card; one in `avoid` is not asked for its modes."""
    modes = {card.address: {} if card.id in avoid else _modes(machine, card) for card in cards}
    each = _nodes_of_each(cards, nodes, modes, topology)
    return {
        card.address: _layout(modes[card.address], card, nodes[card.address], topology, each)
        for card in cards
    }


def _layout(
    modes: dict[str, str], card: Function, nodes: list[Node], topology: Topology, each: int | None
) -> Layout:
    mode = modes.get("compute_partition", "")
    part = any(node.part(card.address) for node in nodes)
    split = len(nodes) > 1 or part or mode not in ("", "SPX")
    if not split:
        return Layout(modes, nodes, 1, split)
    model = card.product
    if mode in _COUNTS:
        count = _COUNTS[mode]
    elif mode == "CPX" and model in _XCDS:
        count = _XCDS[model]
    elif topology.closed:
        count = each or 0
    else:  # all nodes can be read; a single part is what a recording of a container has
        count = len(nodes) if len(nodes) > 1 else 0
    return Layout(modes, nodes, count if count >= max(len(nodes), 2) else None, split)


def _nodes_of_each(
    cards: list[Function],
    nodes: Mapping[str, list[Node]],
    modes: Mapping[str, Mapping[str, str]],
    topology: Topology,
) -> int | None:
    """Return how many nodes each card has, where all are alike and cut alike; else None.

    Processors' nodes are never closed: a closed one is a GPU or a part of one.
    """
    driven = [card for card in cards if card.driver == "amdgpu"]
    kinds = {(card.product, modes[card.address].get("compute_partition")) for card in driven}
    total = sum(len(own) for own in nodes.values()) + len(topology.closed)
    if len(kinds) != 1 or total % len(driven) or topology.gaps:
        return None
    return total // len(driven)


def _modes(machine: Machine, card: Function) -> dict[str, str]:
    """Return the compute (SPX, DPX, QPX, CPX …) and memory (NPS1, NPS4 …) partition modes."""
    if card.asleep or card.driver != "amdgpu":
        return {}
    texts = {
        kind: machine.read(f"{card.folder}/current_{kind}_partition", 32)
        for kind in ("compute", "memory")
    }
    return {f"{kind}_partition": mode for kind, mode in texts.items() if mode}


def child(
    machine: Machine, card: Function, node: Node, layout: Layout, whole: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the sighting of the partition of `card` that `node` is; `whole` is the card's."""
    parts = {member.part(card.address) for member in layout.nodes}
    # Kernels that number no partition list them in order.
    numbered = len(parts) == len(layout.nodes)
    number = node.part(card.address) if numbered else layout.nodes.index(node)
    draft = Draft(
        ids=[f"amd:{card.address}/xcp{number}"],
        kind="gpu",
        vendor="amd",
        parent=card.id,
        pci=card.pci,
        backends=["hip"],
        power_state=card.power_state,
        node_index={"kfd": node.index},
    )
    draft.put("node_index.drm_render", node.get("drm_render_minor"))
    draft.put("nodes", [kfd.DEVICE, *device_nodes.paths(draft.fields["node_index"])])
    draft.fact("granted", "ok", f"{node.folder}/properties can be read")
    draft.put("profile", layout.profile)
    target = node.get("gfx_target_version")
    draft.put("gfx", gfx.from_target(target) if target else None, "KFD gives no gfx target")
    clock = node.get("max_engine_clk_fcompute")
    draft.put("clocks.max_mhz", clock, "KFD gives no compute clock")
    draft.put("bandwidth", None, SHARED)
    draft.put("units", node.units, "KFD gives no SIMD count")
    # Where the others cannot be read, the whole card's units are chipdb's to add.
    draft.put("share.units", node.units)
    if node.units:
        draft.put("share.of", layout.units)
    _put_memory(machine, draft, node, layout, whole.get("memory") or {})
    return draft.sighting()


def _put_memory(
    machine: Machine, draft: Draft, node: Node, layout: Layout, whole: Mapping[str, Any]
) -> None:
    """KFD's bank is the partition's own size, in every NPS mode (amdgpu_amdkfd_xcp_memory_size)."""
    size = sum(bank.get("size_in_bytes", 0) for bank in kfd.banks(machine, node))
    source, vram = "KFD mem_banks", (whole.get("parts") or {}).get("vram")
    if not size and vram and layout.count:
        # The driver cuts memory evenly: what a memory partition has, by the XCDs in it.
        size, source = vram // layout.count, f"mem_info_vram_total / {layout.count}"
    draft.put("memory.total", size or None, "KFD gives no memory size for this partition")
    if size:
        draft.fields["memory"] |= {
            "kind": whole.get("kind") or "dedicated",
            "usable": size,
            "parts": {"vram": size},
        }
        draft.note("memory_sources", {"vram": source})
