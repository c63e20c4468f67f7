"""What says that NVIDIA hardware is here, gathered from files before any library is touched.

What the kernel driver says in /proc/driver/nvidia is what it remembers (nv_procfs_read_gpu_info in
nv-procfs.c of open-gpu-kernel-modules); it initialises no GPU. Before driver 590 reading
``information`` takes a power reference (rm_ref_dynamic_power), which resumes a suspended GPU; since
then it is cached.
"""

from __future__ import annotations

from probe_core.sysfs import power
from probe_core.sysfs.pci import normal_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from probe_core.api import Machine, Request
    from probe_nvidia.nvml import Asker

    Sighting = Mapping[str, Any]

# Drivers under which NVIDIA's own software can use a GPU; a card that vfio-pci holds sleeps, but
# no library of NVIDIA can reach it, so it keeps nobody from asking about the others.
_OWN_DRIVERS = ("nvidia", "nvgpu", "gk20a")

# Drivers that keep a device for a guest; Xen's module xen-pciback names its driver pciback.
_PASSTHROUGH = ("pci-stub", "pciback", "xen-pciback")

# Signs of NVIDIA's driver where the PCI bus shows nothing: sandboxes, WSL.
_SIGNS = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/nvidia0")
_WSL = "/dev/dxg"
_WSL_LIBRARY = "/usr/lib/wsl/lib/libnvidia-ml.so.1"

_PROC = "/proc/driver/nvidia"
_LIMIT = 8192
"""Bytes of one file, of which the driver writes some twenty short lines."""

_CACHED_SINCE = 590

INTEGRATED = frozenset({"3.2", "5.3", "6.2", "7.2", "8.7", "10.1", "11.0", "12.1"})
"""Compute capabilities that exist only in SoCs: Tegra K1, X1, X2, Xavier, Orin, Thor (10.1 until
CUDA 12.9, then 11.0) and GB10 (NVIDIA, "CUDA GPU compute capability")."""

_TREE = "/sys/firmware/devicetree/base"
_NVGPU = "/sys/module/nvgpu"


class Scene:
    """The NVIDIA side of a machine, as files alone show it.

    `cards` are the bus prober's sightings of NVIDIA GPUs, by their first id; `proc` is what
    /proc/driver/nvidia says, by PCI id; `soc` is the Jetson module, if this is one; `found` is
    whether anything of NVIDIA's is here.
    """

    __slots__ = ("cards", "found", "machine", "proc", "request", "soc", "version")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.machine = machine = request.machine
        gpus = (sighting for sighting in request.bus if _is_nvidia_gpu(sighting))
        self.cards = {gpu["ids"][0]: gpu for gpu in gpus}
        self.version = driver_version(machine)
        # A recording sleeps no more, and a user who allows waking wants the names, too.
        careful = machine.live and not request.active and wakes(self.version)
        self.proc = driver_cards(machine, self.asleep if careful else ())
        self.soc = None
        if machine.exists(_TREE) or machine.exists(_NVGPU) or any(map(_is_node, self.cards)):
            from probe_nvidia import tegra  # needed on no PC and no server

            self.soc = tegra.identify(machine, list(self.cards.values()))
        self.found = bool(self.cards or self.proc or self.soc) or _has_signs(machine)

    @property
    def evidence(self) -> bool:
        """Whether anything says that NVIDIA hardware is, or may be, here."""
        return self.found or self.only_suspected

    @property
    def only_suspected(self) -> bool:
        """Whether asking is the only way to know: Windows, and WSL, which show no usable bus."""
        return not self.found and (self.machine.os == "windows" or self.machine.exists(_WSL))

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


def _has_signs(machine: Machine) -> bool:
    return any(map(machine.exists, _SIGNS)) or all(map(machine.exists, (_WSL, _WSL_LIBRARY)))


def _is_nvidia_gpu(sighting: Sighting) -> bool:
    return sighting.get("vendor") == "nvidia" and sighting.get("kind") == "gpu"


def _is_node(identity: str) -> bool:
    return identity.startswith("dt:")


def _address(identity: str) -> tuple[int, ...]:
    domain, bus, slot = identity[4:].split(":")
    return int(domain, 16), int(bus, 16), int(slot.replace(".", ""), 16)


class DriverCard:
    """One GPU: its model and UUID (None when the driver does not know them yet).

    `minor` is the number of its device node, `excluded` whether NVreg_ExcludedGpus names it.
    """

    __slots__ = ("excluded", "minor", "model", "uuid")

    def __init__(self, facts: dict[str, str]) -> None:
        self.model = _reported(facts.get("Model"))
        self.uuid = _reported(facts.get("GPU UUID"))
        self.excluded = facts.get("GPU Excluded") == "Yes"
        minor = facts.get("Device Minor", "")
        self.minor = int(minor) if minor.isdecimal() and len(minor) <= 4 else None


def driver_cards(machine: Machine, unread: Collection[str] = ()) -> dict[str, DriverCard]:
    """Return the GPUs of the loaded driver by PCI id (``pci:0000:01:00.0``).

    The files of those in `unread` are left alone: nothing but their presence is known.
    """
    gpus = {}
    for address in machine.listdir(f"{_PROC}/gpus"):
        identity = normal_id(address)
        if identity and identity in unread:
            gpus[identity] = DriverCard({})
            continue
        text = machine.read(f"{_PROC}/gpus/{address}/information", _LIMIT)
        if identity and text is not None:
            gpus[identity] = DriverCard(_facts(text))
    return gpus


def driver_version(machine: Machine) -> str | None:
    """Return the loaded kernel driver's version ("580.95.05"), None when it is not loaded.

    The line is "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue …", or
    "… Open Kernel Module for x86_64  580.95.05  Release Build …".
    """
    for token in _version_line(machine).split():
        if token.replace(".", "").isdecimal() and "." in token:
            return token
    return None


def is_open(machine: Machine) -> bool:
    """Return whether the loaded driver is the one with open kernel modules."""
    return "Open Kernel Module" in _version_line(machine)


def wakes(version: str | None) -> bool:
    """Return whether reading a suspended GPU's ``information`` would resume it."""
    branch = (version or "").partition(".")[0]  # 580 of "580.95.05"
    return not (branch.isdecimal() and len(branch) <= 4 and int(branch) >= _CACHED_SINCE)


def _version_line(machine: Machine) -> str:
    text = machine.read(f"{_PROC}/version", _LIMIT) or ""
    return next((line for line in text.splitlines() if line.startswith("NVRM version")), "")


def _facts(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


def _reported(value: str | None) -> str | None:
    # Before first use the driver prints question marks in place of the UUID's digits.
    return value if value and "?" not in value and value != "Unknown" else None
