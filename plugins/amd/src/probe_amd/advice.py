"""Says what a person should know about a card that cannot compute, and what would help."""

from __future__ import annotations

import os

from probe_core.api import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_amd.kfd import Topology
    from probe_amd.pci import Card
    from probe_core.api import Machine


def on_driver(card: Card) -> dict[str, Any] | None:
    """Return a finding when `card` is driven by something else than amdgpu."""
    if card.driver == "amdgpu":
        return None
    if not card.driver:
        return finding(
            "driver-not-loaded",
            device=card.id,
            what=f"{card.id} has no driver",
            why="no kernel module is bound to this AMD GPU",
            fix="load it (modprobe amdgpu) and read the kernel log for why it did not load",
        )
    if card.driver == "radeon":
        return finding(
            "driver-without-compute",
            device=card.id,
            what=f"{card.id} is driven by radeon",
            why="the radeon driver offers no compute interface",
            fix="for a GCN card boot with radeon.si_support=0 radeon.cik_support=0"
            " amdgpu.si_support=1 amdgpu.cik_support=1",
        )
    return finding(
        "device-set-aside",
        severity="info",
        device=card.id,
        what=f"{card.id} is bound to {card.driver}",
        why="it is set aside, most often for a virtual machine, and cannot be used from here",
        fix="bind it to amdgpu to use it on this machine",
    )


def on_kfd(topology: Topology, cards: list[Card]) -> dict[str, Any] | None:
    """Return a finding when amdgpu runs but no compute interface shows."""
    driven = [card for card in cards if card.driver == "amdgpu"]
    if not driven or topology.nodes:
        return None
    if topology.unreadable:
        why = "KFD's nodes are listed but cannot be read: a container's device rules hide them"
        return finding(
            "kfd-hidden",
            what="AMD compute units cannot be read",
            why=why,
            fix="start the container with --device=/dev/kfd --device=/dev/dri",
        )
    why = "the amdgpu driver lists no GPU under /sys/class/kfd"
    if not topology.present:
        why = "there is no /sys/class/kfd: the kernel lacks CONFIG_HSA_AMD, or a sandbox hides it"
    return finding(
        "kfd-missing",
        severity="info",
        what="ROCm cannot use the AMD GPUs",
        why=why,
        fix="use a kernel with CONFIG_HSA_AMD and a GPU that KFD supports",
    )


def on_nodes(machine: Machine, topology: Topology, minors: list[int]) -> Iterator[dict[str, Any]]:
    """Yield findings on /dev/kfd and render nodes that this user may not open.

    Asked of the live machine alone: a recorded one has neither the nodes nor the user.
    """
    if not (machine.live and topology.nodes):
        return
    for path in ["/dev/kfd", *(f"/dev/dri/renderD{minor}" for minor in minors)]:
        if not os.path.exists(path):
            yield finding(
                "device-node-missing",
                what=f"{path} is missing",
                why="the kernel has the GPU but this container was not given its node",
                fix=f"start the container with --device={path}",
            )
        elif not os.access(path, os.R_OK | os.W_OK):
            yield finding(
                "no-permission",
                what=f"{path} cannot be opened",
                why="this user is not in the group that owns it",
                fix="add the user to the groups render and video, then log in again",
            )
