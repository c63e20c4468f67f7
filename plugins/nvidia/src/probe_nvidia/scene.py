"""What says that NVIDIA hardware is here, gathered from files before any library is touched."""

from __future__ import annotations

from probe_core.sysfs import power
from probe_nvidia import procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_core.api import Request
    from probe_nvidia.ask import Asker

    Sighting = Mapping[str, Any]

__all__ = ["Scene", "driver_of"]

# Drivers under which NVIDIA's own software can use a GPU; a card that vfio-pci holds sleeps, but
# no library of NVIDIA can reach it, so it keeps nobody from asking about the others.
_OWN_DRIVERS = ("nvidia", "nvgpu", "gk20a")

# Drivers that keep a device for a guest; Xen's module xen-pciback names its driver pciback.
_PASSTHROUGH = ("pci-stub", "pciback", "xen-pciback")

# Signs of NVIDIA's driver where the PCI bus shows nothing: sandboxes, WSL.
_SIGNS = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/nvidia0")
_WSL = "/dev/dxg"
WSL_LIBRARY = "/usr/lib/wsl/lib/libnvidia-ml.so.1"

_TREE = "/sys/firmware/devicetree/base"
_NVGPU = "/sys/module/nvgpu"


class Scene:
    """The NVIDIA side of a machine, as files alone show it.

    `cards` are the bus prober's sightings of NVIDIA GPUs, by their first id; `proc` is what
    /proc/driver/nvidia says, by PCI id; `soc` is the Jetson module, if this is one. `avoid` are
    the ids of GPUs that must not be asked.
    """

    __slots__ = ("active", "avoid", "cards", "machine", "proc", "soc", "touching", "version")

    def __init__(self, request: Request) -> None:
        self.machine = machine = request.machine
        self.active = request.active
        self.avoid = request.avoid
        self.touching = request.touching
        gpus = (sighting for sighting in request.bus if _is_nvidia_gpu(sighting))
        self.cards = {gpu["ids"][0]: gpu for gpu in gpus}
        self.version = procfs.driver_version(machine)
        # A recording sleeps no more, and a user who allows waking wants the names, too.
        careful = machine.live and not request.active and procfs.wakes(self.version)
        self.proc = procfs.cards(machine, self.asleep if careful else ())
        self.soc = None
        if machine.exists(_TREE) or machine.exists(_NVGPU) or any(map(_is_node, self.cards)):
            from probe_nvidia import tegra  # needed on no PC and no server

            self.soc = tegra.identify(machine, list(self.cards.values()))

    @property
    def evidence(self) -> bool:
        """Whether anything says that NVIDIA hardware is, or may be, here."""
        return bool(self.cards or self.proc or self.soc) or self.only_suspected or self._signs()

    @property
    def only_suspected(self) -> bool:
        """Whether asking is the only way to know: Windows, and WSL, which show no usable bus."""
        if self.cards or self.proc or self.soc or self._signs():
            return False
        machine = self.machine
        if machine.os == "windows":
            return True
        return machine.exists(_WSL) and not machine.exists(WSL_LIBRARY)

    def _signs(self) -> bool:
        exists = self.machine.exists
        return any(map(exists, _SIGNS)) or (exists(_WSL) and exists(WSL_LIBRARY))

    @property
    def asleep(self) -> list[str]:
        """Ids of the GPUs that are runtime-suspended and that NVIDIA's software would wake."""
        return [
            identity
            for identity, card in self.cards.items()
            if power.asleep(card.get("power_state")) and driver_of(card) in _OWN_DRIVERS
        ]

    @property
    def served(self) -> bool:
        """Whether NVIDIA's kernel driver is loaded, as far as files tell."""
        return bool(self.version) or any(driver_of(c) == "nvidia" for c in self.cards.values())

    @property
    def reserved(self) -> list[str]:
        """The passthrough drivers, where they keep every GPU for guests; else nothing."""
        names = {driver_of(card) or "" for card in self.cards.values()}
        if self.proc or self.soc or not all(map(is_passthrough, names)):
            return []
        return sorted(names)

    def other_drivers(self) -> list[str]:
        """Return the kernel drivers, other than NVIDIA's, that hold the GPUs, sorted."""
        names = {driver_of(card) for card in self.cards.values()}
        return sorted(name for name in names if name and name not in _OWN_DRIVERS)

    def reachable(self) -> list[str]:
        """Return the PCI ids of the GPUs that NVIDIA's driver serves, in PCI order."""
        ids = {i for i, card in self.cards.items() if driver_of(card) == "nvidia"}
        ids = (ids | set(self.proc)) - set(self.excluded())
        return sorted((i for i in ids if i.startswith("pci:")), key=_address)

    def excluded(self) -> list[str]:
        """Return the PCI ids of the GPUs that the driver was told to leave alone."""
        return [identity for identity, card in self.proc.items() if card.excluded]

    def nodes(self, identity: str | None, asker: Asker | None = None) -> list[str]:
        """Return the device nodes that a program must open to use the GPU with the PCI id.

        CUDA opens /dev/nvidiactl, the GPU's own node and /dev/nvidia-uvm. WSL has /dev/dxg in their
        place, Jetson's nvgpu driver nodes of its own. `asker` is NVML, where it answers.
        """
        machine = self.machine
        if identity is None or machine.os != "linux" or machine.exists(_WSL):
            return []
        minor = self.proc[identity].minor if identity in self.proc else None
        if minor is None and asker is not None:
            minor = asker.get(None, "nvmlDeviceGetMinorNumber")
        own = [] if minor is None else [f"/dev/nvidia{minor}"]
        return [*own, "/dev/nvidiactl", "/dev/nvidia-uvm"]


def driver_of(card: Sighting) -> str | None:
    """Return the name of the kernel driver that holds the card; None when nobody said."""
    driver = card.get("driver")
    return driver.get("name") if driver else None


def is_passthrough(driver: str) -> bool:
    """Return whether a kernel driver keeps its device for a virtual machine."""
    # vfio-pci has variants: nvgrace_gpu_vfio_pci serves GH200 (drivers/vfio/pci/nvgrace-gpu).
    return driver in _PASSTHROUGH or driver.replace("_", "-").endswith("vfio-pci")


def _is_nvidia_gpu(sighting: Sighting) -> bool:
    return sighting.get("vendor") == "nvidia" and sighting.get("kind") == "gpu"


def _is_node(identity: str) -> bool:
    return identity.startswith("dt:")


def _address(identity: str) -> tuple[int, ...]:
    domain, bus, slot = identity[4:].split(":")
    return int(domain, 16), int(bus, 16), int(slot.replace(".", ""), 16)
