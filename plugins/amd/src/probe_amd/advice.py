"""Says what a person should know about a card that cannot compute, and what would help."""

from __future__ import annotations

from probe_core.api import finding
from probe_core.sysfs import nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_amd.kfd import Topology
    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function


def on_driver(card: Function) -> dict[str, Any] | None:
    """Return a finding when `card` is driven by something else than amdgpu."""
    if card.driver == "amdgpu":
        return None
    if not card.driver:
        return finding(
            "driver-not-loaded",
            device=card.id,
            step="driver",
            what=f"{card.id} has no driver",
            why="no kernel module is bound to this AMD GPU",
            fix="load it (modprobe amdgpu) and read the kernel log for why it did not load",
        )
    if card.driver == "radeon":
        return finding(
            "driver-without-compute",
            device=card.id,
            step="driver",
            evidence=f"{card.folder}/driver: radeon",
            what=f"{card.id} is driven by radeon",
            why="the radeon driver offers no compute interface",
            fix="for a GCN card boot with radeon.si_support=0 radeon.cik_support=0"
            " amdgpu.si_support=1 amdgpu.cik_support=1",
        )
    return finding(
        "device-passthrough",
        severity="info",
        device=card.id,
        step="driver",
        evidence=f"{card.folder}/driver: {card.driver}",
        what=f"{card.id} is bound to {card.driver}",
        why="another driver has reserved it, most often for a virtual machine (passthrough)",
        fix="bind it to amdgpu to use it on this machine",
    )


def on_kfd(topology: Topology, cards: list[Function]) -> dict[str, Any] | None:
    """Return a finding when amdgpu runs but no compute interface shows."""
    driven = [card for card in cards if card.driver == "amdgpu"]
    if not driven or topology.nodes:
        return None
    if topology.unreadable:
        return finding(
            "kfd-hidden",
            step="granted",
            what="AMD compute units cannot be read",
            why="KFD's nodes are listed but cannot be read: a container's device rules hide them",
            fix="start the container with --device=/dev/kfd --device=/dev/dri",
        )
    reason = "the amdgpu driver lists no GPU under /sys/class/kfd"
    if not topology.present:
        reason = (
            "there is no /sys/class/kfd: the kernel lacks CONFIG_HSA_AMD, or a sandbox hides it"
        )
    return finding(
        "kfd-missing",
        severity="info",
        step="node",
        what="ROCm cannot use the AMD GPUs",
        why=reason,
        fix="use a kernel with CONFIG_HSA_AMD and a GPU that KFD supports",
    )


def on_nodes(machine: Machine, topology: Topology, minors: list[int]) -> Iterator[dict[str, Any]]:
    """Yield findings on /dev/kfd and render nodes that this process may not open."""
    if topology.nodes:
        renders = (path for minor in minors for path in nodes.paths({"drm_render": minor}))
        yield from nodes.findings(machine, ["/dev/kfd", *renders])
