"""Jetson modules: their GPU is part of the SoC, and the device tree says which one it is.

Modules before JetPack 6 have no NVML; later ones answer "Not Supported" to most of it and call
every Orin "Orin (nvgpu)" (nvitop#168).
"""

from __future__ import annotations

from probe_core.sysfs import devicetree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from probe_core.api import Machine

__all__ = ["COMPUTE_CAPABILITY", "Soc", "identify"]

COMPUTE_CAPABILITY = {
    "nvidia,tegra210": "5.3",
    "nvidia,tegra186": "6.2",
    "nvidia,tegra194": "7.2",
    "nvidia,tegra234": "8.7",
    "nvidia,tegra264": "11.0",
}
"""SoC → compute capability of its GPU (NVIDIA, "CUDA GPU compute capability", and for 264 the
CUDA 13 release notes, which renamed Thor's 10.1 to 11.0)."""


class Soc:
    """A Jetson module: `ids` of its GPU, the `model` a person knows it by, `dt` compatibles."""

    __slots__ = ("compute_capability", "dt", "ids", "model")

    def __init__(self, ids: list[str], model: str | None, dt: list[str], capability: str) -> None:
        self.ids = ids
        self.model = model
        self.dt = dt
        self.compute_capability = capability


def identify(machine: Machine, cards: Sequence[Mapping[str, Any]]) -> Soc | None:
    """Return the Jetson module that `machine` is; None when it is none.

    `cards` are the bus prober's NVIDIA GPUs: the one with a device-tree id is the module's.
    """
    names = devicetree.board(machine)
    capability = next((COMPUTE_CAPABILITY[n] for n in names if n in COMPUTE_CAPABILITY), None)
    if capability is None:
        return None
    node = _gpu_node(cards)
    dt = list(dict.fromkeys([*node.get("dt", ()), *names]))
    ids = [name for name in node.get("ids", ()) if name.startswith("dt:")] or ["nvidia:soc"]
    return Soc(ids, devicetree.model(machine), dt, capability)


def _gpu_node(cards: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    nodes = (card for card in cards if any(name.startswith("dt:") for name in card["ids"]))
    return next(nodes, {})
