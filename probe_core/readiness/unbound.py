"""Why no kernel driver serves a device: none is bound, or its firmware is not there.

The other half of the step `driver`, which needs it for such a device alone.
"""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.machine.surroundings import hypervisor
from probe_core.readiness.chain import broken
from probe_core.readiness.scene import folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene


_STEP = "driver"

# The first Linux whose driver takes a device without being forced: data, and one comparison.

XE_ALONE = ("xe2", "xe3", "xe3p")
"""Architectures of Intel that i915 never takes."""

# Module and architecture ("" for all that it drives) to the first Linux. Alchemist: the README of
# intel-gpu-i915-backports; Xe2: Lunar Lake and Battlemage came without force_probe in 6.12;
# RDNA 3: gfx_v11_0.c came with 5.19, and 6.0 is what the RX 7900 needs; RDNA 3.5: Strix Point was
# sold from 6.10 on; RDNA 4: 6.8 does not know it (ROCm/legacy-rocm-build#5102), and it was sold
# from 6.13 on; amdxdna: Documentation/accel/amdxdna, merged for 6.14; intel_vpu:
# drivers/accel/ivpu, for 6.3.
FIRST = {
    ("i915", "xe-hpg"): (6, 2),
    ("xe", "xe2"): (6, 12),
    ("amdgpu", "rdna3"): (6, 0),
    ("amdgpu", "rdna3.5"): (6, 10),
    ("amdgpu", "rdna4"): (6, 12),
    ("amdxdna", ""): (6, 14),
    ("intel_vpu", ""): (6, 3),
}

# RHEL's kernels keep their number and take drivers of later ones.
_BACKPORTING = (".el8", ".el9", ".el10")


def too_old_for(device: DeviceDoc, scene: Scene, module: str | None) -> str | None:
    """Return "6.12" where the running kernel is older than the first that takes the device."""
    first = FIRST.get((module or "", device["arch"] or "")) or FIRST.get((module or "", ""))
    if first is None or any(mark in scene.release for mark in _BACKPORTING):
        return None
    parts = scene.release.split("-")[0].split(".")[:2]
    numbers = tuple(number for part in parts if (number := decimal(part)) is not None)
    return f"{first[0]}.{first[1]}" if len(numbers) == 2 and numbers < first else None


# Why none is bound: each way has a fix of its own.

MODULES = {
    ("nvidia", "gpu"): "nvidia",
    ("amd", "gpu"): "amdgpu",
    ("amd", "npu"): "amdxdna",
    ("intel", "npu"): "intel_vpu",
    ("intel", "accelerator"): "habanalabs",
    ("hailo", "npu"): "hailo_pci",
    ("google", "npu"): "apex",
    ("amazon", "accelerator"): "neuron",
    ("qualcomm", "accelerator"): "qaic",
    ("tenstorrent", "accelerator"): "tenstorrent",
}
"""Vendor and kind of a PCI device to the kernel module that drives it."""

# All DRM drivers of the kernel give up with it (drm_firmware_drivers_only); NVIDIA's does not ask.
_DRM = ("amdgpu", "i915", "xe")

# What each driver cannot start without, below /lib/firmware.
FIRMWARE = {
    "amdgpu": "amdgpu",
    "i915": "i915",
    "xe": "xe",
    "intel_vpu": "intel/vpu",
    "panthor": "arm/mali",
    "hailo": "hailo",
}


FIRMWARE_PATH = "/sys/module/firmware_class/parameters/path"
"""Where the kernel looks before /lib/firmware: NVIDIA's GPU operator and COS set it."""

UPDATES = "/lib/firmware/updates"
"""What goes before the distribution's own files; amdgpu-dkms-firmware is there."""


def has_other_firmware(scene: Scene, folder: str) -> bool:
    """Return whether the kernel may find firmware elsewhere than in /lib/firmware (fw_path of
    drivers/base/firmware_loader/main.c), so that what lacks there is not known to lack.
    """
    machine = scene.machine
    return bool(machine.read(FIRMWARE_PATH, 4096) or machine.listdir(f"{UPDATES}/{folder}"))


# A new GPU on an old linux-firmware: the files of its graphics block (MODULE_FIRMWARE in
# gfx_v11_0.c and gfx_v12_0.c).
OF_ARCHITECTURE = {"rdna3": "gc_11_0_", "rdna3.5": "gc_11_5_", "rdna4": "gc_12_0_"}
"""Architecture to how the names of its files below amdgpu's folder begin."""


def module_of(device: DeviceDoc, scene: Scene) -> str | None:
    """Return the module that ought to drive a device; None where it is not known."""
    if not device["id"].startswith("pci:"):
        return _platform_module(device)
    vendor, kind = device["vendor"] or "", device["kind"]
    if (vendor, kind) == ("intel", "gpu"):
        if device["arch"] in XE_ALONE:
            return "xe"
        # Of two loaded ones it is not known which refused.
        loaded = [name for name in ("xe", "i915") if scene.modules.is_loaded(name)]
        return loaded[0] if loaded else "i915"
    return MODULES.get((vendor, kind))


def _platform_module(device: DeviceDoc) -> str | None:
    names = device.get("dt") or []
    if device["vendor"] == "nvidia" and device["kind"] == "gpu":
        return "nvgpu"
    if any(name.startswith("rockchip,") and "npu" in name for name in names):
        return "rknpu"
    if any(name.startswith("arm,mali-valhall-csf") for name in names):
        return "panthor"
    return None


def unbound(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step of a device that the bus shows without a driver."""
    folder = folder_of(device)
    evidence = f"{folder}/driver is absent" if folder else f"{device['id']}: no driver is bound"
    module = module_of(device, scene)
    if module is None:
        return broken(_STEP, "no-driver", evidence)
    if module == "nvgpu":
        return broken(_STEP, "jetson-no-nvgpu", evidence)
    loaded = scene.modules.is_loaded(module)
    first = too_old_for(device, scene, module)
    if first and device["kind"] == "gpu" and not _is_from_outside(scene, module):
        text = f"{evidence}; Linux {scene.release} runs, {device['arch']} needs {first}"
        return broken(_STEP, "kernel-too-old", text)
    if loaded:
        return _refused(device, scene, module, evidence)
    if device["kind"] == "npu" and loaded is False:
        return broken(_STEP, "npu-no-module", f"{evidence}; {module} is not in /proc/modules")
    return _not_loaded(device, scene, module, evidence, is_known=loaded is False)


def _is_from_outside(scene: Scene, module: str) -> bool:
    """Return whether a module is not the kernel's own (amdgpu-dkms): its number says nothing."""
    file = scene.modules.on_disk(module)
    return file is not None and "/kernel/" not in file


def _refused(device: DeviceDoc, scene: Scene, module: str, evidence: str) -> StepDoc:
    """Return why a loaded driver left the device alone."""
    evidence += f"; {module} is loaded"
    if module in _DRM and "nomodeset" in scene.modules.command_line:
        return broken(_STEP, "nomodeset", f"{evidence}; /proc/cmdline: nomodeset")
    if module == "nvidia":
        from probe_core.readiness.nvidia import refusal

        return refusal(device, scene) or broken(_STEP, "no-driver", evidence)
    # i915 keeps a GPU without firmware: what it left alone it does not know.
    if module != "i915" and (lacking := _without_firmware(device, scene, module)):
        return broken(_STEP, "firmware-missing", f"{evidence}; {lacking}")
    if module in ("i915", "xe"):
        return broken(_STEP, "kernel-too-old", evidence)
    return broken(_STEP, "amdgpu-refused" if module == "amdgpu" else "no-driver", evidence)


def _without_firmware(device: DeviceDoc, scene: Scene, module: str) -> str | None:
    """Return the folder of firmware that is not there; a container has none, the host counts."""
    machine, folder = scene.machine, FIRMWARE.get(module)
    if folder is None or scene.container is not None or not machine.listdir("/lib/firmware"):
        return None
    if has_other_firmware(scene, folder):
        return None
    path = f"/lib/firmware/{folder}"
    names = machine.listdir(path)
    if module == "panthor":
        arches = [name for name in names if name.startswith("arch")]
        if any(machine.listdir(f"{path}/{name}") for name in arches):
            return None
    if not names or module == "panthor":
        return f"{path} is absent or empty"
    stem = OF_ARCHITECTURE.get(device["arch"] or "")
    lacks = module == "amdgpu" and stem and not any(name.startswith(stem) for name in names)
    return f"{path} has no {stem}*" if lacks else None


def firmware_missing(device: DeviceDoc, scene: Scene, module: str) -> StepDoc | None:
    """Return the step of a device whose driver binds without the firmware that starts it.

    Hailo-8's makes the node all the same (home-assistant/operating-system#3663). In a virtual
    machine the host may have started the device before ("Firmware was already loaded").
    """
    lacking = _without_firmware(device, scene, module)
    if lacking is None or hypervisor(scene.machine) is not None:
        return None
    return broken(_STEP, "firmware-missing", f"{module} is bound; {lacking}")


def guc_missing(scene: Scene) -> StepDoc | None:
    """Return the step of a GPU that i915 holds and cannot start without its scheduler's firmware.

    i915 then declares it wedged and keeps its display (Alchemist and later need the GuC).
    """
    machine, path = scene.machine, f"/lib/firmware/{FIRMWARE['i915']}"
    if scene.container is not None:
        return None
    if not machine.listdir("/lib/firmware") or machine.listdir(path):
        return None
    if has_other_firmware(scene, FIRMWARE["i915"]):
        return None
    if scene.modules.is_built_in("i915"):  # so may its firmware be (CONFIG_EXTRA_FIRMWARE)
        return None
    return broken(_STEP, "firmware-missing", f"i915 is bound; {path} is absent or empty")


def _not_loaded(
    device: DeviceDoc, scene: Scene, module: str, evidence: str, *, is_known: bool
) -> StepDoc:
    modules = scene.modules
    file = modules.on_disk(module)
    if file is None and scene.container is None:
        if place := modules.for_other_kernel(module):
            text = f"{evidence}; {place} has {module}, and not for {modules.release}"
            return broken(_STEP, "module-missing-for-kernel", text)
        if modules.is_complete:
            text = f"{evidence}; {modules.folder} has no {module}"
            return broken(_STEP, "driver-not-installed", text)
    if module in _DRM and "nomodeset" in modules.command_line:
        return broken(_STEP, "nomodeset", f"{evidence}; /proc/cmdline: nomodeset")
    if forbidden := modules.forbidden(module):
        return broken(_STEP, "module-blacklisted", f"{evidence}; {': '.join(forbidden)}")
    if file is None or not is_known:
        return broken(_STEP, "no-driver", evidence)
    if module == "nvidia":
        from probe_core.readiness.nvidia import installed_for_others

        if step := installed_for_others(device, scene):
            return step
    if modules.secure_boot and is_signed_by_owner(file):
        return broken(_STEP, "secure-boot", f"{evidence}; {file} is not loaded, Secure Boot is on")
    if modules.signed_alone and is_signed_by_owner(file):
        text = f"{evidence}; {file} is not loaded; /proc/cmdline: module.sig_enforce"
        return broken(_STEP, "module-unsigned", text)
    return broken(_STEP, "module-not-loaded", f"{evidence}; {file} is not loaded")


def is_signed_by_owner(file: str) -> bool:
    """Return whether a module is one that the machine's owner signs, not the distribution.

    DKMS, akmods and NVIDIA's installer (kernel/drivers/video) build on the machine itself.
    """
    return "/kernel/" not in file or "/kernel/drivers/video/nvidia" in file
