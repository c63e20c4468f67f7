"""Turns the partitions of an MI300 (DPX … CPX modes) into child devices of their card.

In these modes KFD lists several nodes for one PCI device; only the first is a PCI function, the
others hang on platform devices (amdgpu_xcp_N), so a partition's id is the card's and its number.
"""

from __future__ import annotations

from probe_amd import gfx, kfd
from probe_amd.facts import Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_amd.kfd import Node
    from probe_amd.pci import Card
    from probe_core.api import Machine

SHARED = "a partition shares the card's memory bus"


def modes(machine: Machine, card: Card) -> dict[str, str]:
    """Return the compute (SPX, DPX, QPX, CPX …) and memory (NPS1, NPS4 …) partition modes."""
    found = {
        kind: machine.read(f"{card.folder}/current_{kind}_partition")
        for kind in ("compute", "memory")
    }
    return {f"{kind}_partition": mode for kind, mode in found.items() if mode}


def child(machine: Machine, card: Card, nodes: list[Node], place: int) -> dict[str, Any]:
    """Return the sighting of partition number `place` of `card`, whose KFD nodes are `nodes`."""
    node = nodes[place]
    facts = Facts(
        ids=[f"amd:{card.address}/xcp{place}"],
        kind="gpu",
        vendor="amd",
        parent=card.id,
        pci=card.pci,
        backends=["hip"],
        power_state=card.power,
        node_index={"kfd": node.index},
    )
    if minor := node.get("drm_render_minor"):
        facts.fields["node_index"]["drm_render"] = minor
    target = node.get("gfx_target_version")
    facts.say("gfx", gfx.from_target(target) if target else None, "KFD gives no gfx target")
    clock = node.get("max_engine_clk_fcompute")
    facts.say("clocks.max_mhz", clock, "KFD gives no compute clock")
    facts.say("bandwidth", None, SHARED)
    _share(facts, nodes, node)
    size = sum(bank.get("size_in_bytes", 0) for bank in kfd.banks(machine, node))
    facts.say("memory.total", size or None, "KFD gives no memory size for this partition")
    if size:
        facts.fields["memory"] |= {"kind": "dedicated", "usable": size, "parts": {"vram": size}}
    return facts.sighting()


def _share(facts: Facts, nodes: list[Node], node: Node) -> None:
    facts.say("units", node.units, "KFD gives no SIMD count")
    every = [one.units for one in nodes]
    if node.units and all(every):
        facts.fields["share"] = {"units": node.units, "of": sum(count or 0 for count in every)}
