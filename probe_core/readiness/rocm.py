"""Whether ROCm can start on an AMD GPU: its interface in the kernel, its libraries, its variable.

Without it Vulkan still works, so that none of this blocks the device.
"""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.model.ids import pci_address
from probe_core.readiness.chain import broken, ok, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene


_STEP = "runtime"

KFD_NODES = "/sys/class/kfd/kfd/topology/nodes"
_OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
RUNTIMES = (
    "libhsa-runtime64.so.1",
    "libhsa-runtime64.so",
    # Its number is ROCm's major; PyTorch's wheels have none in the name.
    "libamdhip64.so",
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
)

# Architecture to the major version of its ISA (LLVM, "User Guide for AMDGPU Backend").
_MAJORS = {
    "gcn5": 9,
    "cdna1": 9,
    "cdna2": 9,
    "cdna3": 9,
    "cdna4": 9,
    "rdna1": 10,
    "rdna2": 10,
    "rdna3": 11,
    "rdna3.5": 11,
    "rdna4": 12,
}

_MOST = (63, 255, 255)
"""Largest major, minor and step of the variable (libhsakmt, topology.c)."""

_MAX_NODES = 64


def rocm(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step `runtime` of a GPU that amdgpu drives."""
    if "kfd" not in (device.get("node_index") or {}) and _is_left_out(device, scene):
        text = f"no node in {KFD_NODES} has the location of {pci_address(device)}"
        # The interface has no part for it (kfd_device.c begins with GCN 2).
        code = "kfd-unsupported" if device["arch"] == "gcn1" else "kfd-no-gpu"
        return broken(_STEP, code, text)
    if (step := _overridden(device, scene)) is not None:
        return step
    path = scene.libraries.find_any(*RUNTIMES)
    if path is None:
        evidence = f"{RUNTIMES[0]} is in no folder of the loader, of /opt/rocm or of wheels"
        if scene.libraries.surely_absent(*RUNTIMES):
            return broken(_STEP, "rocm-missing", evidence)
        return unknown(_STEP, f"{evidence}; other folders may have it")
    return _without_kernels(device, scene, path) or ok(_STEP, f"{path}: there")


def _overridden(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Return the step when the variable keeps ROCm from starting, or its code from running.

    Code for another major generation ends in memory faults and resets; libhsakmt refuses such a
    value since rocm-systems#5686, which takes an empty one for unset. Before, that was gfx000
    (ROCR-Runtime#354).
    """
    value = scene.environ.get(_OVERRIDE)
    # HSA_OVERRIDE_GFX_VERSION_N is that of one node, and goes first there.
    if value is None or any(name.startswith(f"{_OVERRIDE}_") for name in scene.environ):
        return None
    if not value:
        return unknown(_STEP, f"{_OVERRIDE} is empty, which older ROCm takes for gfx000")
    major = _major_of(value)
    if major is None:
        return broken(_STEP, "hsa-override-bad", f"{_OVERRIDE}={value[:40]}")
    own = _own_major(device)
    name = device.get("gfx") or device["arch"]
    if own == 9 and major == 9 and _is_of_another_line(device, value):
        text = f"{_OVERRIDE}={value[:40]}; the GPU is {name}, whose code is of another kind"
        return broken(_STEP, "hsa-override-foreign", text)
    if own is None or own == major:
        return None
    text = f"{_OVERRIDE}={value[:40]}; the GPU is {name}, of major version {own}"
    return broken(_STEP, "hsa-override-foreign", text)


def _major_of(text: str) -> int | None:
    """Return 10 of "10.3.0"; None of what libhsakmt does not take."""
    numbers = [decimal(part) for part in text.split(".")]
    valid = len(numbers) == 3 and all(
        number is not None and number <= most for number, most in zip(numbers, _MOST, strict=True)
    )
    return numbers[0] if valid else None


def _own_major(device: DeviceDoc) -> int | None:
    """Return 11 of gfx1103, else the major version that its architecture has."""
    # The last two characters are minor and step: gfx90a is 9.0.a.
    major = decimal((device.get("gfx") or "")[3:-2])
    return major if major is not None else _MAJORS.get(device["arch"] or "")


# Lines within gfx9 (LLVM, AMDGPUUsage): matrix instructions came with gfx908, and from gfx90a on
# the kernels' descriptors divide one register file. So code of a later line has instructions that
# an earlier one lacks (gfx906 set to 9.0.8 fails: ROCm/TheRock#1844), and code of an earlier line
# has no such division. Of code for the first line on gfx908 no source says that it fails.
_LINES_OF_GFX9 = {
    **dict.fromkeys(("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c", "gcn5"), 0),
    **dict.fromkeys(("gfx908", "cdna1"), 1),
    **dict.fromkeys(("gfx90a", "cdna2"), 2),
    **dict.fromkeys(("gfx940", "gfx941", "gfx942", "gfx950", "cdna3", "cdna4"), 3),
}


def _is_of_another_line(device: DeviceDoc, value: str) -> bool:
    """Return whether code of gfx9 that the variable names cannot run on a GPU of gfx9."""
    _, minor, step = (int(part) for part in value.split("."))
    code = _LINES_OF_GFX9.get(f"gfx9{minor:x}{step:x}")
    own = _LINES_OF_GFX9.get(device.get("gfx") or device["arch"] or "")
    return None not in (code, own) and code != own and (code, own) != (0, 1)


# The GPU whose code runs on others of its generic processor, by LLVM's "Generic Processors"
# (AMDGPUUsage): gfx9-generic is gfx900, 902, 904, 906, 909 and 90c; gfx10-1-generic gfx1010 to
# 1013; gfx10-3-generic gfx1030 to 1036; gfx11-generic gfx1100 to 1103 and 1150 to 1153. Code for
# one of them is not generic, so that not all pairs are here: gfx906 has instructions of its own
# and fails with other code (ROCm/TheRock#1844), and gfx1102 and gfx1103 have fewer registers than
# kernels for gfx1100 may ask for (ROCm/legacy-rocm-build#4557: hangs). gfx908, 90a, 94x and 12xx
# have no relative. 103x: rocBLAS#1339; 90c: rocBLAS#1398.
_BASES = {
    "gfx90c": "gfx900",
    **dict.fromkeys(("gfx1011", "gfx1012", "gfx1013"), "gfx1010"),
    **dict.fromkeys((f"gfx103{step}" for step in range(1, 7)), "gfx1030"),
    "gfx1101": "gfx1100",
}


def override_for(device: DeviceDoc, scene: Scene) -> str | None:
    """Return the value of the variable with which the installed rocBLAS has code for a GPU.

    None where it has none of the base of the GPU's generic processor, or the GPU cannot run it.
    """
    base, path = _BASES.get(device.get("gfx") or ""), scene.libraries.find_any(*RUNTIMES)
    if base is None or path is None:
        return None
    names = scene.libraries.names(f"{path.rpartition('/')[0]}/rocblas/library")
    has_code = any(f"{base}{end}" in name for name in names for end in "._")
    return f"{base[3:-2]}.{base[-2]}.{base[-1]}" if has_code else None


def _is_left_out(device: DeviceDoc, scene: Scene) -> bool:
    """Return whether KFD's topology is all there to read, and does not have the device.

    In a container the nodes of other GPUs cannot be read (EPERM): then nothing is sure.
    """
    address = pci_address(device)
    names = scene.machine.listdir(KFD_NODES)[:_MAX_NODES]
    if address is None or not names:
        return False
    places = [_place(scene.machine.read(f"{KFD_NODES}/{name}/properties", 8192)) for name in names]
    own = _location(address)
    return own is not None and None not in places and own not in places


def kfd_folder(device: DeviceDoc, machine: Machine) -> str | None:
    """Return the folder of a GPU in KFD's topology; None where none has its location."""
    address = pci_address(device)
    own = _location(address) if address else None
    for name in machine.listdir(KFD_NODES)[:_MAX_NODES] if own else ():
        if _place(machine.read(f"{KFD_NODES}/{name}/properties", 8192)) == own:
            return f"{KFD_NODES}/{name}"
    return None


def _location(address: str) -> tuple[int, int] | None:
    """Return (PCI domain, location) as KFD writes them; None of what is no address."""
    domain, bus, slot = address.split(":")
    number, _, function = slot.partition(".")
    try:
        location = int(bus, 16) << 8 | int(number, 16) << 3 | int(function, 16)
        return int(domain, 16), location
    except ValueError:
        return None


def _place(text: str | None) -> tuple[int, int] | None:
    """Return (PCI domain, location) of a node's properties; None when they cannot be read."""
    pairs = (line.split() for line in (text or "").splitlines())
    values = {pair[0]: decimal(pair[1]) for pair in pairs if len(pair) == 2}
    location = values.get("location_id")
    return None if location is None else (values.get("domain") or 0, location)


def _without_kernels(device: DeviceDoc, scene: Scene, path: str) -> StepDoc | None:
    """Judge rocBLAS beside the runtime: its folder has files for each ISA that it was built for."""
    gfx, override = device.get("gfx"), scene.environ.get(_OVERRIDE)
    folder = f"{path.rpartition('/')[0]}/rocblas/library"
    names = scene.libraries.names(folder) if gfx and not override else []
    targets = [name for name in names if "gfx" in name]
    if not gfx or not targets or any(gfx in name or "generic" in name for name in targets):
        return None
    return broken(_STEP, "gfx-not-supported", f"{folder} has no file for {gfx}")
