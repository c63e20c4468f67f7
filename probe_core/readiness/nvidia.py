"""What NVIDIA's kernel driver says of itself, and which GPUs a version of it supports."""

from __future__ import annotations

from probe_core.model.ids import is_passthrough_driver
from probe_core.readiness.chain import broken
from probe_core.readiness.library import NVML, library_version, major_of, version_of
from probe_core.readiness.unbound import has_other_firmware

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene


_STEP = "driver"

# Architecture to the last driver branch that supports it (NVIDIA, "Legacy GPUs", and release notes:
# 580 is the last of Maxwell, Pascal and Volta).
_LAST_BRANCH = {
    "tesla": 340,
    "fermi": 390,
    "kepler": 470,
    "maxwell": 580,
    "pascal": 580,
    "volta": 580,
}

# Architecture to the first production branch that supports it.
_FIRST_BRANCH = {
    "pascal": 367,
    "volta": 384,
    "turing": 410,
    "ampere": 450,
    "hopper": 520,
    "ada": 520,
    "blackwell": 570,
}

_OLDEST_OFFERED = 535
"""The oldest branch that distributions still have (Ubuntu 22.04 to 24.04, Debian 12)."""

# The open module needs a GSP, which came with Turing (open-gpu-kernel-modules, README).
_WITHOUT_GSP = ("tesla", "fermi", "kepler", "maxwell", "pascal", "volta")

# Only the open module supports these and Grace Hopper (NVIDIA, "Transitions Fully Towards
# Open-Source GPU Kernel Modules").
_OPEN_ALONE = ("blackwell", "rubin")
_GRACE_HOPPER = "nvidia/gh200"


def is_open(text: str) -> bool:
    """Return whether the loaded module is the open one."""
    return "Open Kernel Module" in text


def branch_for(device: DeviceDoc, scene: Scene) -> str:
    """Return the branch to install for a GPU that the installed one does not support.

    One driver serves all GPUs of a machine: it is one that the others can do with, too. It is ""
    where the GPU's architecture is not known.
    """
    arch = device["arch"] or ""
    if arch not in _LAST_BRANCH and arch not in _FIRST_BRANCH:
        return ""
    first, last = _branches([device, *_others(device, scene)])
    return str(last) if last < _NEWEST else str(max(first, _OLDEST_OFFERED))


_NEWEST = 1 << 16
"""Stands for no last branch."""


def _branches(devices: Iterable[DeviceDoc]) -> tuple[int, int]:
    """Return the first and the last branch of which each supports all of these GPUs."""
    arches = [device["arch"] or "" for device in devices]
    first = max(_FIRST_BRANCH.get(arch, 0) for arch in arches)
    return first, min(_LAST_BRANCH.get(arch, _NEWEST) for arch in arches)


def _others(device: DeviceDoc, scene: Scene) -> list[DeviceDoc]:
    """Return the other GPUs that the same driver is for: none that a guest has."""
    return [
        other
        for other in scene.devices
        if other["vendor"] == "nvidia"
        and other["kind"] == "gpu"
        and other["id"].startswith("pci:")
        and other["id"] != device["id"]
        and not is_passthrough_driver(scene.driver(other), "nvidia")
    ]


# Causes whose fix takes another branch or flavour of the driver, for all GPUs at once.
_OF_DRIVER = (
    *("driver-not-installed", "nouveau-bound", "nova-bound", "no-driver", "legacy-branch"),
    *("driver-too-old-for-gpu", "open-module-unsupported", "closed-module-unsupported"),
)


def opposed(device: DeviceDoc, code: str, scene: Scene) -> str | None:
    """Return what to do where no driver serves this GPU and another one; None where one does.

    What repairs one of them would take the other one out of use.
    """
    if code not in _OF_DRIVER or scene.container is not None or device["vendor"] != "nvidia":
        return None
    for other in _others(device, scene):
        first, last = _branches([device, other])
        arches = [device["arch"] or "", other["arch"] or ""]
        needs_open = _needs_open(device, arches[0]) or _needs_open(other, arches[1])
        if first > last or (needs_open and any(arch in _WITHOUT_GSP for arch in arches)):
            name = other["name"] or other["id"]
            return (
                f"no driver serves both this GPU ({arches[0]}) and {name} ({arches[1]}): use one"
                " of them here, and the other one in another machine or a virtual one"
            )
    return None


def refusal(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Return why the loaded module does not take the GPU; None where that is not known."""
    text, arch = scene.nvidia_version, device["arch"] or ""
    version = version_of(text)
    if version is None:
        return None
    place = f"/proc/driver/nvidia/version: {version}"
    if is_open(text) and arch in _WITHOUT_GSP and not _is_dropped(arch, version):
        evidence = f"{place}; the GPU's architecture is {arch}, Open Kernel Module"
        return broken(_STEP, "open-module-unsupported", evidence)
    return _unsupported(arch, version, place) or _closed(device, text)


def installed_for_others(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Return why a module that is not loaded cannot stay so: the installed driver is for others.

    It refuses to load where it finds no GPU of its own (nixos-hardware#1828). The libraries tell
    its version, which are installed with it.
    """
    paths = scene.libraries.find(NVML) if scene.libraries.installed(NVML) else []
    version = library_version(scene.machine.realpath(paths[0])) if paths else None
    if version is None:
        return None
    return _unsupported(device["arch"] or "", version, f"{paths[0]} leads to {version}")


def _unsupported(arch: str, version: str, place: str) -> StepDoc | None:
    """Return the step of an architecture that a driver's branch supports no more, or not yet."""
    evidence = f"{place}; the GPU's architecture is {arch}"
    if _is_dropped(arch, version):
        return broken(_STEP, "legacy-branch", evidence)
    if arch in _FIRST_BRANCH and (major_of(version) or 0) < _FIRST_BRANCH[arch]:
        return broken(_STEP, "driver-too-old-for-gpu", evidence)
    return None


def _is_dropped(arch: str, version: str) -> bool:
    return arch in _LAST_BRANCH and (major_of(version) or 0) > _LAST_BRANCH[arch]


def _closed(device: DeviceDoc, text: str) -> StepDoc | None:
    """Judge a GPU that the open module alone can start: the closed one may hold it all the same.

    It binds, and fails as the first program opens the GPU (open-gpu-kernel-modules#862).
    """
    arch, version = device["arch"] or "", version_of(text)
    if version is None or is_open(text) or not _needs_open(device, arch):
        return None
    evidence = f"/proc/driver/nvidia/version: {version}; the GPU's architecture is {arch}"
    return broken(_STEP, "closed-module-unsupported", f"{evidence}, not the open module")


def _needs_open(device: DeviceDoc, arch: str) -> bool:
    chip = device["chip"]
    chips = [chip["id"]] if chip["id"] else chip["candidates"]
    is_grace = bool(chips) and all(name.startswith(_GRACE_HOPPER) for name in chips)
    return arch in _OPEN_ALONE or is_grace


def problem(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Return what is wrong with the driver that holds a GPU, though it holds it."""
    if "nvidia_vgpu_vfio" in scene.loaded:
        return broken(_STEP, "vgpu-host-driver", "/proc/modules: nvidia_vgpu_vfio")
    return _closed(device, scene.nvidia_version) or _without_firmware(device, scene)


def _without_firmware(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Judge the GSP's firmware, which the open module always loads.

    A container has no firmware and needs none: the kernel reads the host's.
    """
    version = version_of(scene.nvidia_version)
    if version is None or not is_open(scene.nvidia_version) or scene.container is not None:
        return None
    machine, folder = scene.machine, f"/lib/firmware/nvidia/{version}"
    if device["arch"] in _WITHOUT_GSP or not machine.listdir("/lib/firmware"):
        return None
    names = machine.listdir(folder)
    if any(name.startswith("gsp_") for name in names) or has_other_firmware(scene, "nvidia"):
        return None
    return broken(_STEP, "gsp-firmware-missing", f"{folder} has no gsp_*.bin")


# Where the NVSwitches are.

BUS = "/sys/bus/pci/devices"


def switches(machine: Machine) -> list[str]:
    """Return the addresses of NVSwitches: bridges of class 0680 by NVIDIA."""
    return [
        address
        for address in machine.listdir(BUS)
        if machine.read(f"{BUS}/{address}/vendor", 16) == "0x10de"
        and (machine.read(f"{BUS}/{address}/class", 16) or "").startswith("0x0680")
    ]


INFINIBAND = "/sys/class/infiniband"

# Boards whose fourth generation of switches is behind bridges of ConnectX-7, which are InfiniBand
# devices, and on no PCI bus itself (NVIDIA, "Fabric Manager User Guide", HGX B200; its
# gpu-driver-container, _assert_nvlink5_system, looks for them in the same folder).
_BEHIND_BRIDGES = ("nvidia/b200-sxm6", "nvidia/b300-sxm6")


def fabric(device: DeviceDoc, scene: Scene) -> str:
    """Return where the fabric manager runs: beside switches of this node, or in the rack's trays.

    Grace Blackwell (GB200, GB300) is Arm, and its switches are never on its own bus.
    """
    has_blackwell = device["arch"] in _OPEN_ALONE
    if switches(scene.machine):
        return "fourth switches" if has_blackwell else "switches"
    if _has_bridges(device, scene.machine):
        return "fourth switches"
    return "rack" if has_blackwell and scene.machine.arch == "aarch64" else ""


def _has_bridges(device: DeviceDoc, machine: Machine) -> bool:
    """Return whether a GPU of such a board sees InfiniBand; a guest with one GPU does not."""
    chip = device["chip"]
    chips = [chip["id"]] if chip["id"] else chip["candidates"]
    own = [name.startswith(_BEHIND_BRIDGES) and not name.endswith("-vgpu") for name in chips]
    return bool(own) and all(own) and bool(machine.listdir(INFINIBAND))
