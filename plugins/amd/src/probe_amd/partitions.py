"""Turns the partitions of an MI300 (DPX … CPX modes) into child devices of their card.

In these modes KFD lists several nodes for one PCI device; only the first is a PCI function, the
others hang on platform devices (amdgpu_xcp_N), so a partition's id is the card's and its number.
"""

from __future__ import annotations

from probe_amd import gfx, kfd
from probe_core.sysfs.sighting import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_amd.kfd import Node
    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function

SHARED = "a partition shares the card's memory bus"


def modes(machine: Machine, card: Function) -> dict[str, str]:
    """Return the compute (SPX, DPX, QPX, CPX …) and memory (NPS1, NPS4 …) partition modes."""
    texts = {
        kind: machine.read(f"{card.folder}/current_{kind}_partition")
        for kind in ("compute", "memory")
    }
    return {f"{kind}_partition": mode for kind, mode in texts.items() if mode}


def child(machine: Machine, card: Function, nodes: list[Node], place: int) -> dict[str, Any]:
    """Return the sighting of partition number `place` of `card`, whose KFD nodes are `nodes`."""
    node = nodes[place]
    draft = Draft(
        ids=[f"amd:{card.address}/xcp{place}"],
        kind="gpu",
        vendor="amd",
        parent=card.id,
        pci=card.pci,
        backends=["hip"],
        power_state=card.power_state,
        node_index={"kfd": node.index},
    )
    draft.put("node_index.drm_render", node.get("drm_render_minor"))
    target = node.get("gfx_target_version")
    draft.put("gfx", gfx.from_target(target) if target else None, "KFD gives no gfx target")
    clock = node.get("max_engine_clk_fcompute")
    draft.put("clocks.max_mhz", clock, "KFD gives no compute clock")
    draft.put("bandwidth", None, SHARED)
    _share(draft, nodes, node)
    size = sum(bank.get("size_in_bytes", 0) for bank in kfd.banks(machine, node))
    draft.put("memory.total", size or None, "KFD gives no memory size for this partition")
    if size:
        draft.fields["memory"] |= {"kind": "dedicated", "usable": size, "parts": {"vram": size}}
    return draft.sighting()


def _share(draft: Draft, nodes: list[Node], node: Node) -> None:
    draft.put("units", node.units, "KFD gives no SIMD count")
    counts = [sibling.units for sibling in nodes]
    if node.units and all(counts):
        draft.put("share", {"units": node.units, "of": sum(count or 0 for count in counts)})
