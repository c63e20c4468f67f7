"""What says that NVIDIA hardware is here, gathered from files before any library is touched."""

from __future__ import annotations

from probe_core.sysfs import power
from probe_nvidia import procfs, tegra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_core.api import Request

    Sighting = Mapping[str, Any]

__all__ = ["Scene"]

# Drivers under which NVIDIA's own software can use a GPU; a card that vfio-pci holds sleeps, but
# no library of NVIDIA can reach it, so it keeps nobody from asking about the others.
_OWN_DRIVERS = ("nvidia", "nvgpu", "gk20a")

# Signs of NVIDIA's driver where the PCI bus shows nothing: sandboxes, WSL.
_SIGNS = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/nvidia0")
_WSL = "/dev/dxg"
WSL_LIBRARY = "/usr/lib/wsl/lib/libnvidia-ml.so.1"


class Scene:
    """The NVIDIA side of a machine, as files alone show it.

    `cards` are the bus prober's sightings of NVIDIA GPUs, by their first id; `proc` is what
    /proc/driver/nvidia says, by PCI id; `soc` is the Jetson module, if this is one.
    """

    __slots__ = ("active", "cards", "machine", "proc", "soc", "version")

    def __init__(self, request: Request) -> None:
        self.machine = request.machine
        self.active = request.active
        gpus = (sighting for sighting in request.bus if _is_nvidia_gpu(sighting))
        self.cards = {gpu["ids"][0]: gpu for gpu in gpus}
        self.proc = procfs.cards(self.machine)
        self.version = procfs.driver_version(self.machine)
        self.soc = tegra.identify(self.machine, list(self.cards.values()))

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

    def other_drivers(self) -> list[str]:
        """Return the kernel drivers, other than NVIDIA's, that hold the GPUs, sorted."""
        names = {driver_of(card) for card in self.cards.values()}
        return sorted(name for name in names if name and name not in _OWN_DRIVERS)

    def reachable(self) -> list[str]:
        """Return the PCI ids of the GPUs that NVIDIA's driver serves, in PCI order."""
        ids = {i for i, card in self.cards.items() if driver_of(card) == "nvidia"}
        ids |= {i for i, card in self.proc.items() if not card.excluded}
        return sorted((i for i in ids if i.startswith("pci:")), key=_address)


def driver_of(card: Sighting) -> str | None:
    """Return the name of the kernel driver that holds the card; None when nobody said."""
    driver = card.get("driver")
    return driver.get("name") if driver else None


def _is_nvidia_gpu(sighting: Sighting) -> bool:
    return sighting.get("vendor") == "nvidia" and sighting.get("kind") == "gpu"


def _address(identity: str) -> tuple[int, ...]:
    domain, bus, slot = identity[4:].split(":")
    return int(domain, 16), int(bus, 16), int(slot.replace(".", ""), 16)
