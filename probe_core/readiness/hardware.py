"""Step `hardware`: whether the device answers on its bus, with all of its lanes and addresses.

Read only while the device is active: a suspended one answers ff on kernels that do not wake it,
and newer kernels wake it for the question ("PCI/sysfs: Ensure devices are powered for config
reads", Linux 6.18).
"""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.model.ids import ACCELERATORS, is_passthrough_driver, pci_address, pci_vendor
from probe_core.readiness.chain import broken, not_applicable, ok, unknown
from probe_core.readiness.scene import folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, LinkDoc, OutcomeDoc, StepDoc
    from probe_core.readiness.scene import Scene


_STEP = "hardware"

_LOST_WIDTH = 63
"""Lanes that a function shows which answers ff to every read: six bits of its link status."""

# The region through which programs reach the card's memory, by vendor: BAR 1 of NVIDIA's, BAR 0 of
# AMD's, BAR 2 of Intel's.
_MEMORY_REGION = {"nvidia": 1, "amd": 0, "intel": 2}
_SMALL_BAR = 256 << 20


def hardware(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    folder = folder_of(device)
    if folder is None or not scene.linux or "bus" not in device["seen_by"]:
        seen = [name for name in device["seen_by"] if name != "bus"]
        return ok(_STEP, f"{seen[0]} reports {device['id']}" if seen else f"{device['id']}: there")
    if scene.driver(device) is None:
        return _addresses(device, folder, scene) or ok(_STEP, f"{folder}: there")
    if _may_sleep(device, folder, scene):
        return ok(_STEP, f"{folder}: there")
    link = next((link for link in device["links"] if link["kind"] == "pcie"), None)
    if link is None:
        return _answers(device, folder, scene)
    return (
        _narrow(device, link, folder, scene)
        or _errors(folder, scene)
        or _small_window(device, folder, scene)
        or ok(_STEP, f"{folder}: there")
    )


def _may_sleep(device: DeviceDoc, folder: str, scene: Scene) -> bool:
    """Return whether the device may be suspended, so that its link must not be read.

    A prober says "unknown" of a GPU that is lost: then the kernel is asked, which answers from
    memory. One without runtime power management has no such file, and suspends nothing.
    """
    if device["power_state"] in ("active", None):
        return False
    status = scene.machine.read(f"{folder}/power/runtime_status", 32)
    if status == "error":  # its driver could not wake it: runtime PM leaves it alone from then on
        return False
    return status not in ("active", "unsupported", None) or device["power_state"] != "unknown"


def _answers(device: DeviceDoc, folder: str, scene: Scene) -> StepDoc:
    """Judge an active device whose link files gave no link."""
    if scene.machine.read_int(f"{folder}/current_link_width") != _LOST_WIDTH:
        return ok(_STEP, f"{folder}: there")
    evidence = f"{folder}/current_link_width is {_LOST_WIDTH}"
    head = _configuration(folder, scene)
    if head is not None and head.strip(b"\xff"):
        return unknown(_STEP, f"{evidence}, but {folder}/config can be read")
    if device["id"] in scene.answered:
        return unknown(_STEP, f"{evidence}, but the device answers its library")
    text = f"; {folder}/config is all ff" if head else ""
    return broken(_STEP, "off-the-bus", evidence + text)


def _configuration(folder: str, scene: Scene) -> bytes | None:
    """Return the first bytes of the configuration space; users may read 64."""
    try:
        return scene.machine.read_bytes(f"{folder}/config", 64) or None
    except (OSError, ValueError):
        return None


def _addresses(device: DeviceDoc, folder: str, scene: Scene) -> StepDoc | None:
    """Judge the regions of a device without driver: a driver refuses one that has no address.

    Where firmware gave the large one none, its size may be missing, too; of the others, as that of
    an MI210's registers (ROCm/legacy-rocm-build#6281), the size tells that the device wants it.
    """
    number = _MEMORY_REGION.get(device["vendor"] or "")
    if number is None or device["kind"] != "gpu":
        return None
    regions = _regions(folder, scene)
    if len(regions) <= number or not any(start for start, _, _ in regions[:6]):
        return None
    if regions[number][0] == 0:
        return _unassigned(folder, number)
    for at, (start, size, flags) in enumerate(regions[:6]):
        if start == 0 and size and flags & _IS_MEMORY:
            return _unassigned(folder, at)
    return None


_IS_MEMORY = 0x200
"""IORESOURCE_MEM (include/linux/ioport.h): ports (0x100) a driver can do without."""


def _unassigned(folder: str, number: int) -> StepDoc:
    return broken(_STEP, "bar-unassigned", f"{folder}/resource: region {number} begins at 0")


def _regions(folder: str, scene: Scene) -> list[tuple[int, int, int]]:
    """Return (start, size, flags) of the regions in a `resource` file; none when a line is odd."""
    regions = []
    for line in (scene.machine.read(f"{folder}/resource", 4096) or "").splitlines():
        try:
            start, end, flags = (int(field, 16) for field in line.split())
        except ValueError:
            return []
        if not 0 <= start <= end < 1 << 64:
            return []
        regions.append((start, end - start + 1 if end else 0, flags))
    return regions


def _narrow(device: DeviceDoc, link: LinkDoc, folder: str, scene: Scene) -> StepDoc | None:
    """Judge the lanes: an idle link runs slower and keeps them, so that they tell."""
    width, most = link.get("local_width"), link.get("local_max_width")
    if device["kind"] != "gpu" or not width or not most or width >= most:
        return None
    if _is_beside_pcie(device, scene):
        return None
    text = f"{folder}/current_link_width is {width}, max_link_width {most}"
    return broken(_STEP, "link-narrow", text)


def _is_beside_pcie(device: DeviceDoc, scene: Scene) -> bool:
    """Return whether the GPU's data goes over another link, so that PCIe is narrow by design.

    POWER9 (AC922) has its GPUs on NVLink and two lanes of PCIe, Grace on NVLink-C2C; an integrated
    GPU has no link at all, and what it shows of one is made up (GB10: x1 of x16).
    """
    if device["memory"]["kind"] in ("unified", "shared") or scene.machine.arch == "ppc64le":
        return True
    return scene.machine.arch == "aarch64" and device["arch"] in ("hopper", "blackwell")


def _errors(folder: str, scene: Scene) -> StepDoc | None:
    text = scene.machine.read(f"{folder}/aer_dev_fatal", 4096) or ""
    count = text.partition("TOTAL_ERR_FATAL ")[2].partition("\n")[0].strip()
    if decimal(count):
        return broken(_STEP, "aer-errors", f"{folder}/aer_dev_fatal: TOTAL_ERR_FATAL {count}")
    return None


def _small_window(device: DeviceDoc, folder: str, scene: Scene) -> StepDoc | None:
    """Judge Resizable BAR: only a card that the kernel says can have a larger window.

    Cards before it have 256 MiB by design, and data centre cards a large one anyway.
    """
    number = _MEMORY_REGION.get(device["vendor"] or "")
    total = device["memory"]["total"]
    path = f"{folder}/resource{number}_resize"
    has_little = total is not None and total <= _SMALL_BAR
    if number is None or has_little or not scene.machine.exists(path):
        return None
    sizes, regions = scene.machine.read(path, 64) or "", _regions(folder, scene)
    try:
        possible = int(sizes, 16)
    except ValueError:
        return None
    # A set bit n stands for a window of 2^n MiB (resourceN_resize in sysfs-bus-pci).
    if len(regions) > number and regions[number][1] == _SMALL_BAR and possible >> 9:
        return broken(_STEP, "rebar-off", f"{folder}/resource: region {number} is 256 MiB")
    return None


# Step `driver`: whether a kernel driver that programs can use is bound to the device.

_DRIVER = "driver"

# Drivers under which the vendor's compute runtime cannot open the device: CUDA needs the module
# nvidia, ROCm the compute interface of amdgpu, which radeon lacks.
_WITHOUT_COMPUTE = {
    ("nvidia", "nouveau"): "nouveau-bound",
    ("nvidia", "nova"): "nova-bound",
    ("nvidia", "nova_core"): "nova-bound",
    ("nvidia", "nova-core"): "nova-bound",
    ("amd", "radeon"): "radeon-bound",
}

# Architectures that i915 cannot start without the scheduler's firmware.
_WITH_GUC = ("xe-hpg", "xe-hpc")


def driver(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    name, folder = scene.driver(device), folder_of(device)
    if name is None:
        return _unbound(device, scene)
    place = f"{folder}/driver is {name}"
    if folder is None or "bus" not in device["seen_by"]:
        place = f"{device['sources'].get('driver.name', 'a prober')} reports the driver {name}"
    if is_passthrough_driver(name, device["vendor"]):
        return broken(_DRIVER, "reserved-for-vm", place)
    if code := _WITHOUT_COMPUTE.get((device["vendor"] or "", name)):
        if name == "radeon" and device["arch"] is None:  # amdgpu takes GCN, and no card before it
            return unknown(_DRIVER, f"{place}; whether amdgpu supports this card is not known")
        return broken(_DRIVER, code, place)
    if name == "nvidia" and device["id"] not in scene.answered:
        return _nvidia(device, scene, place)
    if name == "hailo":
        scene.load("drivers")
        from probe_core.readiness.unbound import firmware_missing

        return firmware_missing(device, scene, name) or ok(_DRIVER, place)
    if name == "i915" and device["arch"] in _WITH_GUC:
        scene.load("drivers")
        from probe_core.readiness.unbound import guc_missing

        return guc_missing(scene) or ok(_DRIVER, place)
    return ok(_DRIVER, place)


def _unbound(device: DeviceDoc, scene: Scene) -> StepDoc:
    if device["parent"]:
        return not_applicable(_DRIVER, "a part uses the driver of its whole device")
    if not scene.linux or "bus" not in device["seen_by"]:
        return unknown(_DRIVER, "nothing reports which kernel driver it has")
    if device["id"].startswith("usb:"):
        return not_applicable(_DRIVER, "programs drive it themselves, through its node on the USB")
    # A folder that nobody recorded says nothing of its driver; `class` is what the bus was read of.
    scene.load("drivers")
    from probe_core.readiness.unbound import unbound

    return unbound(device, scene)


def _nvidia(device: DeviceDoc, scene: Scene, place: str) -> StepDoc:
    """Judge a GPU that NVIDIA's driver holds and that no library answered for."""
    scene.load("drivers")
    from probe_core.readiness.nvidia import problem

    fault = problem(device, scene) if pci_address(device) else None
    return fault or ok(_DRIVER, place)


# Step `responding`: whether the device answers its driver, as far as its probers learnt.

_RESPONDING = "responding"

# Not the device's: the core gives it what the system or chipdb have.
_NO_ANSWERS = ("bus", "node", "chipdb", "derived")

BY_STATUS = {"timeout": "driver-hangs", "crashed": "driver-crashes"}
"""What an outcome says of the device itself; all else is the plugin's own fault."""


def responding(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    if device["power_state"] in ("suspended", "suspending"):
        return unknown(_RESPONDING, f"its power state is {device['power_state']}", "asleep")
    confirmed = [name for name in device["seen_by"] if name not in ("bus", *scene.unavailable)]
    if not confirmed:
        return _unconfirmed(device, scene)
    source = device["sources"].get("memory.total")
    if source in confirmed and source not in _NO_ANSWERS:
        return ok(_RESPONDING, f"{source} reads its memory")
    silent = device["power_state"] == "unknown" and not device["backends"]
    if silent and device["kind"] in ACCELERATORS and source is None:
        text = f"{confirmed[0]} reads neither memory nor runtimes; its power state is unknown"
        return broken(_RESPONDING, "not-responding", text)
    return unknown(_RESPONDING, f"{confirmed[0]} asked nothing of the device itself")


def _unconfirmed(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Judge a device that no prober but the bus confirms, by how its vendor's own prober ended."""
    vendor = pci_vendor(device)
    own = (scene.unavailable.get(name) for name in device["seen_by"])
    outcome = scene.failures.get(vendor or "") or next(filter(None, own), None)
    if outcome is None:
        return unknown(_RESPONDING, "no plugin queried it")
    evidence = f"prober {outcome['prober']}: {outcome['status']}, {outcome['reason']}"
    if code := BY_STATUS.get(outcome["status"]):
        return broken(_RESPONDING, code, evidence)
    return _unavailable(outcome, evidence, scene)


def _unavailable(outcome: OutcomeDoc, evidence: str, scene: Scene) -> StepDoc:
    if outcome["status"] != "unavailable" or outcome.get("code") == "client-missing":
        return unknown(_RESPONDING, evidence)
    cause = scene.causes.get(outcome.get("code") or "")
    # A cause of another step would stand here as a break of this one.
    code = cause.code if cause and cause.step == _RESPONDING else "query-fails"
    return broken(_RESPONDING, code, evidence)
