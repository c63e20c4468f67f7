"""What of a computer is watched for changes: facts by class and name, without private values.

Everything is read from files that the bus and the kernel keep; no library is loaded and no device
is woken.
"""

from __future__ import annotations

import os
from hashlib import blake2b

from probe_core.commands import Anonymiser
from probe_core.model.ids import ACCELERATORS, driver_name
from probe_core.model.verdict import state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.commands import Request
    from probe_core.model.document import DeviceDoc

Facts = dict[str, str]
"""Class and name ("driver/nvidia") to the value; what is absent has no entry."""

CLASSES = (
    "driver",
    "kernel",
    "setting",
    "library",
    "firmware",
    "node",
    "group",
    "variable",
    "container",
    "device",
    "loaded",
    "bound",
)
"""Classes of facts, the likeliest cause first; the last two follow from others.

`driver` is a module's version, `setting` what forbids a module or is a kernel parameter, `node` the
owner and mode of a device node, `device` an accelerator on the bus with its memory and lanes,
`loaded` whether a module is, `bound` which driver holds a device.
"""

_MODULES = (
    "nvidia nvidia_uvm nouveau nova_core amdgpu radeon i915 xe intel_vpu amdxdna habanalabs"
    " vfio_pci"
).split()
_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1", "libze_intel_gpu.so.1", "libhsa-runtime64.so.1")
_VARIABLES = (
    "CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER NVIDIA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES"
    " HIP_VISIBLE_DEVICES GPU_DEVICE_ORDINAL HSA_OVERRIDE_GFX_VERSION ZE_AFFINITY_MASK"
    " ONEAPI_DEVICE_SELECTOR MESA_VK_DEVICE_SELECT DRI_PRIME LD_LIBRARY_PATH"
).split()
_FIRMWARE = ("nvidia", "amdgpu", "i915", "xe")
_NODES = ("nvidia", "kfd", "dri", "accel", "mali", "hailo", "neuron", "apex_")
_PARAMETERS = (
    *("nvidia", "nouveau", "amdgpu", "i915", "xe.", "modprobe.", "module", "nomodeset", "iommu"),
    *("intel_iommu", "amd_iommu", "pci", "vfio", "rd.driver", "hugepages", "mem"),
)
_MAX_NODES = 64
_MAX_VALUE = 200


def facts_of(request: Request, secret: bytes) -> Facts:
    """Return the facts; `secret` is the computer's own, so that equal values stay equal."""
    hider = _Hider(secret, request)
    found = (
        *_of_kernel(request, hider),
        *_of_modules(request),
        *_of_libraries(request),
        *_of_firmware(request),
        *_of_nodes(request),
        *_of_process(request),
        *(fact for device in _accelerators(request) for fact in _of_device(device)),
    )
    return {name: hider.plain(value)[:_MAX_VALUE] for name, value in found if value}


def broken_devices(request: Request) -> dict[str, str]:
    """Return the step and the code that keep each device away ("driver:secure-boot"), by its id."""
    result = {}
    for device in _accelerators(request):
        readiness = device["readiness"]
        steps = [step for step in readiness["steps"] if step["step"] == readiness["broken"]]
        if state_of(device) == "blocked" and steps:
            result[device["id"]] = f"{steps[0]['step']}:{steps[0]['code'] or ''}"
    return result


def _accelerators(request: Request) -> list[DeviceDoc]:
    return [device for device in request.report["devices"] if device["kind"] in ACCELERATORS]


class _Hider:
    """Replaces what identifies a computer or a person, as recordings do."""

    def __init__(self, secret: bytes, request: Request) -> None:
        self._secret = secret
        self._anonymiser = Anonymiser(secret)
        environ = request.machine.environ
        self._names = {
            value: mark
            for value, mark in (
                (environ.get("HOME", ""), "~"),
                (environ.get("USER", ""), "USER"),
                (request.machine.read("/proc/sys/kernel/hostname", 256) or "", "HOST"),
            )
            if len(value) > 2 and value != "root"
        }

    def plain(self, text: str) -> str:
        """Return a text without UUIDs, the home, and the names of the user and the host."""
        for value, mark in self._names.items():
            text = text.replace(value, mark)
        return self._anonymiser.uuids(text)

    def digest(self, text: str) -> str:
        """Return what a text's change is seen by, and nothing else."""
        return blake2b(text.encode(), key=self._secret, digest_size=6).hexdigest()


def _of_kernel(request: Request, hider: _Hider) -> Iterator[tuple[str, str | None]]:
    scene = request.scene
    if not scene.linux:
        return
    yield "kernel/release", scene.release
    own = [part for part in scene.modules.command_line if part.startswith(_PARAMETERS)]
    others = [
        part
        for part in scene.modules.command_line
        # Their values name disks, and each boot of GRUB's names its image.
        if part not in own and not part.startswith(("BOOT_IMAGE=", "root=", "resume=", "initrd="))
    ]
    for part in own:
        name, _, value = part.partition("=")
        yield f"setting/{name}", value or "on"
    yield "setting/other parameters", hider.digest(" ".join(sorted(others)))
    yield "firmware/Secure Boot", "on" if scene.modules.secure_boot else "off"
    yield "firmware/BIOS", request.machine.read("/sys/class/dmi/id/bios_version", 256)
    yield "container/kind", scene.container


def _of_modules(request: Request) -> Iterator[tuple[str, str | None]]:
    modules = request.scene.modules
    for name in _MODULES if request.scene.linux else ():
        if name in modules.loaded:
            yield f"loaded/{name}", "loaded"
            yield f"driver/{name}", request.machine.read(f"/sys/module/{name}/version", 64)
        if name in ("nvidia", "amdgpu", "i915", "xe", "nouveau"):
            forbidden = modules.forbidden(name)
            yield f"setting/{name} forbidden", ": ".join(forbidden) if forbidden else None
    text = request.scene.nvidia_version.partition("\n")[0] if request.scene.linux else ""
    # The module's own file of its version is absent in containers; this one is there as well.
    if version := version_in(text):
        flavour = " open" if "Open Kernel Module" in text else ""
        yield "driver/nvidia", version + flavour


def version_in(text: str) -> str:
    """Return the version that the first line of NVIDIA's driver names; "" without one."""
    words = text.partition("\n")[0].split()
    versions = (w for w in words if w.count(".") in (1, 2) and w.replace(".", "").isdecimal())
    return next(versions, "")


def _of_libraries(request: Request) -> Iterator[tuple[str, str | None]]:
    if not request.scene.linux:
        return
    for name in _LIBRARIES:
        paths = request.scene.libraries.find(name)
        yield f"library/{name}", request.machine.realpath(paths[0]) if paths else None
    yield "library/ROCm", request.machine.read("/opt/rocm/.info/version", 64)


def _of_firmware(request: Request) -> Iterator[tuple[str, str | None]]:
    for name in _FIRMWARE if request.scene.linux else ():
        names = request.machine.listdir(f"/lib/firmware/{name}")
        if names:
            digest = blake2b("\n".join(names).encode(), digest_size=4).hexdigest()
            short = ", ".join(names) if len(names) < 6 else f"{len(names)} files ({digest})"
            yield f"firmware/{name}", short


def _of_nodes(request: Request) -> Iterator[tuple[str, str | None]]:
    machine = request.machine
    listed = [f"/dev/{name}" for name in machine.listdir("/dev") if name.startswith(_NODES)]
    for folder in ("/dev/dri", "/dev/accel"):
        if folder in listed:
            listed.remove(folder)
            listed += [f"{folder}/{n}" for n in machine.listdir(folder) if n.startswith(_RENDER)]
    for path in listed[:_MAX_NODES]:
        try:
            state = os.stat(machine.path(path))
        except (OSError, ValueError):
            continue
        yield f"node/{path}", f"{state.st_mode & 0o7777:04o} {state.st_uid}:{state.st_gid}"


_RENDER = ("render", "accel")


def _of_process(request: Request) -> Iterator[tuple[str, str | None]]:
    yield "group/process", " ".join(map(str, sorted(request.scene.process.groups)))
    for name in _VARIABLES:
        if name in request.machine.environ:
            yield f"variable/{name}", request.machine.environ[name] or "(empty)"


def _of_device(device: DeviceDoc) -> Iterator[tuple[str, str | None]]:
    identity = device["id"]
    yield f"device/{identity}", device["name"] or device["vendor"] or device["kind"]
    yield f"bound/{identity}", driver_name(device)
    link = next((link for link in device["links"] if link["kind"] == "pcie"), None)
    width = link.get("local_max_width") if link else None
    yield f"device/{identity} lanes", str(width) if width else None
