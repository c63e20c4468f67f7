"""Jetson modules: their GPU is part of the SoC, and the device tree says which one it is.

Modules before JetPack 6 have no NVML; later ones answer "Not Supported" to most of it and call
every Orin "Orin (nvgpu)" (nvitop#168). Docker masks /sys/firmware, and with it the device tree
(moby, `MaskedPaths`): the uevents of the platform devices then say what they were made of.
"""

from __future__ import annotations

from probe_core.api import each_card
from probe_core.sysfs import devicetree, soc, uevent
from probe_core.sysfs.drm_use import DrmUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.api import Machine, SampleRequest

COMPUTE_CAPABILITY = {
    "nvidia,tegra210": "5.3",
    "nvidia,tegra186": "6.2",
    "nvidia,tegra194": "7.2",
    "nvidia,tegra234": "8.7",
    "nvidia,tegra264": "11.0",
}
"""SoC → compute capability of its GPU (NVIDIA, "CUDA GPU compute capability", and for 264 the
CUDA 13 release notes, which renamed Thor's 10.1 to 11.0)."""

GPU_CAPABILITY = {
    "nvidia,gm20b": "5.3",
    "nvidia,gp10b": "6.2",
    "nvidia,gv11b": "7.2",
    "nvidia,ga10b": "8.7",
}
"""The same by the GPU's own compatible, as the kernel's bindings and L4T's trees have it."""

_NVGPU = ("/sys/module/nvgpu", "/sys/bus/platform/drivers/gk20a")
# Name of the board for people, where the device tree is masked (Documentation/ABI, soc devices).
_MACHINE = "/sys/devices/soc0/machine"
_X86 = ("x86_64", "i686", "i386")


class Soc:
    """A Jetson module: `ids` of its GPU, the `model` a person knows it by, `dt` compatibles.

    `driver` is the kernel driver that serves the GPU, None when none is loaded.
    """

    __slots__ = ("compute_capability", "driver", "dt", "ids", "model")

    def __init__(
        self, ids: list[str], model: str | None, dt: list[str], capability: str, driver: str | None
    ) -> None:
        self.ids = ids
        self.model = model
        self.dt = dt
        self.compute_capability = capability
        self.driver = driver


def identify(machine: Machine, cards: Sequence[Mapping[str, Any]]) -> Soc | None:
    """Return the Jetson module that `machine` is; None when it is none.

    `cards` are the bus prober's NVIDIA GPUs: the one with a device-tree id is the module's.
    """
    node = _gpu_node(cards)
    names = devicetree.board(machine) or _soc_by_devices(machine)
    capability = _first(COMPUTE_CAPABILITY, names)
    capability = capability or _first(GPU_CAPABILITY, node.get("dt", ()))
    if capability is None:
        return None
    dt = list(dict.fromkeys([*node.get("dt", ()), *names]))
    ids = [name for name in node.get("ids", ()) if name.startswith("dt:")] or ["nvidia:soc"]
    model = devicetree.model(machine) or machine.read(_MACHINE, 256)
    return Soc(ids, model or None, dt, capability, _driver(machine, node))


def _first(table: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((table[name] for name in names if name in table), None)


def _gpu_node(cards: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    nodes = (card for card in cards if any(name.startswith("dt:") for name in card["ids"]))
    return next(nodes, {})


def _soc_by_devices(machine: Machine) -> list[str]:
    """Return the SoC that the platform devices belong to, where the tree itself is masked.

    They are called after it: "nvidia,tegra234-gpio", "nvidia,tegra194-host1x".
    """
    if machine.exists(devicetree.TREE) or machine.arch in _X86:
        return []
    for name in machine.listdir(devicetree.PLATFORM)[:256]:
        variables = uevent.read(machine, f"{devicetree.PLATFORM}/{name}")
        for compatible in uevent.listed(variables, "OF_COMPATIBLE"):
            soc = compatible.partition("-")[0]
            if soc in COMPUTE_CAPABILITY:
                return [soc]
    return []


def _driver(machine: Machine, node: Mapping[str, Any]) -> str | None:
    """Return the name of the driver that the GPU is bound to, or of the loaded module."""
    driver: str | None = (node.get("driver") or {}).get("name")
    return driver or ("nvgpu" if any(map(machine.exists, _NVGPU)) else None)


class Sampler:
    """A Jetson module's GPU between two rounds, from its files.

    NVML opens there, and every query is NOT_SUPPORTED (intelligence-per-watt#40).
    """

    def __init__(self, machine: Machine, module: Soc) -> None:
        self._machine = machine
        self._id = module.ids[0]
        self._use = DrmUse(machine)

    def sample(self, request: SampleRequest) -> Iterator[Mapping[str, Any]]:
        """Yield the sample of a round."""
        self._use.refresh()
        places = devicetree.platform_devices(self._machine)
        folders = [folder for path, folder in places if self._id == f"dt:{path}"]
        for folder, may_ask in each_card(request, folders, lambda _: self._id):
            if may_ask:
                folder = self._machine.realpath(folder)
                yield from soc.sample(self._machine, folder, self._id, self._use)
