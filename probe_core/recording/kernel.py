"""What a recording keeps of the kernel's modules and firmware: names, and lines about drivers.

`readiness.modules` and its steps judge by them. Of each file the lines are kept that concern a
driver of a device; the others tell of disks, networks and people.
"""

from __future__ import annotations

from probe_core.readiness.modules import (
    CONFIGURATION,
    DKMS,
    SECURE_BOOT,
    driver_of,
    forbids,
    module_of,
)
from probe_core.readiness.rocm import KFD_NODES
from probe_core.readiness.unbound import FIRMWARE, MODULES, OF_ARCHITECTURE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from probe_core.machine import Machine
    from probe_core.readiness import Scene

__all__ = ["NAMES", "kernel_files", "refused_files"]

NAMES = frozenset(
    {
        *MODULES.values(),
        *("i915", "nouveau", "nova_core", "nvidia_drm", "nvidia_modeset", "nvidia_uvm"),
        *("nvidia_vgpu_vfio", "nvgpu", "panfrost", "panthor", "radeon", "rknpu", "vfio_pci", "xe"),
    }
)
"""The modules that are recorded: drivers of accelerators, and what takes devices from them."""

# Parameters of the kernel that keep a driver from a device, beside the modules' own ones.
_PARAMETERS = frozenset(
    "module_blacklist modprobe.blacklist rd.driver.blacklist nomodeset pci iommu intel_iommu"
    " amd_iommu hugepages default_hugepagesz".split()
)
_LOCKDOWN = "/sys/kernel/security/lockdown"
_MAX_FIRMWARE = 8
"""Names kept of one folder: the question is whether it has any, and any of an architecture."""

_AMDGPU = f"/lib/firmware/{FIRMWARE['amdgpu']}"


def kernel_files(machine: Machine, scene: Scene) -> dict[str, bytes]:
    """Return path to content. A file of which the name alone matters is empty."""
    return {
        **dict.fromkeys(_loaded(machine), b""),
        **dict(_installed(machine, scene)),
        **dict.fromkeys(_built_by_dkms(machine), b""),
        **dict(_configuration(machine)),
        **dict.fromkeys(_firmware(machine), b""),
        **dict(_boot(machine, scene)),
    }


def refused_files(machine: Machine, files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield what stands for files of which the content says nothing, or cannot be read.

    A device cgroup refuses to read the KFD nodes of other jobs' GPUs: that they are there counts.
    A link of 63 lanes is that of a dead device, unless its configuration space answers.
    """
    for name in machine.listdir(KFD_NODES):
        path = f"{KFD_NODES}/{name}/properties"
        if machine.read(path, 8192) is None:
            yield path, b""
    for path, content in files.items():
        folder, _, name = path.rpartition("/")
        if name == "current_link_width" and content.strip() == b"63" and _answers(machine, folder):
            yield f"{folder}/config", b"answers\n"


def _answers(machine: Machine, folder: str) -> bool:
    try:
        return bool(machine.read_bytes(f"{folder}/config", 64).strip(b"\xff"))
    except (OSError, ValueError):
        return False


def _loaded(machine: Machine) -> Iterator[str]:
    for name in NAMES:
        if machine.exists(f"/sys/module/{name}"):
            yield f"/sys/module/{name}/refcnt"


def _installed(machine: Machine, scene: Scene) -> Iterator[tuple[str, bytes]]:
    """Yield the lists of modules of every kernel that is installed, and files they do not have."""
    for folder in scene.modules.kernels:
        for path in filter(None, (scene.modules.on_disk(name, folder) for name in NAMES)):
            yield path, b""
        for name in ("modules.dep", "modules.builtin"):
            text = machine.read(f"{folder}/{name}")
            if text is not None and scene.modules.is_whole(text):
                lines = [
                    line for line in text.splitlines() if driver_of(line.partition(":")[0]) in NAMES
                ]
                yield f"{folder}/{name}", _joined(lines)


def _built_by_dkms(machine: Machine) -> Iterator[str]:
    for package in machine.listdir(DKMS):
        if package.partition("-")[0] in NAMES:
            for version in machine.listdir(f"{DKMS}/{package}"):
                for kernel in machine.listdir(f"{DKMS}/{package}/{version}"):
                    yield f"{DKMS}/{package}/{version}/{kernel}/dkms.conf"


def _configuration(machine: Machine) -> Iterator[tuple[str, bytes]]:
    for folder in CONFIGURATION:
        for name in machine.listdir(folder):
            if name.endswith(".conf"):
                text = machine.read(f"{folder}/{name}") or ""
                if lines := [line for line in text.splitlines() if _configures(line.split())]:
                    yield f"{folder}/{name}", _joined(lines)


def _configures(fields: list[str]) -> bool:
    """Return whether a line of modprobe.d forbids or sets a driver; commands may name anything."""
    return module_of(fields) in NAMES and (fields[0] == "options" or forbids(fields))


def _firmware(machine: Machine) -> Iterator[str]:
    folders = [f"/lib/firmware/{name}" for name in FIRMWARE.values()]
    folders += [f"/lib/firmware/nvidia/{name}" for name in machine.listdir("/lib/firmware/nvidia")]
    folders += [f"/lib/firmware/arm/mali/{n}" for n in machine.listdir("/lib/firmware/arm/mali")]
    for folder in folders:
        names = machine.listdir(folder)
        stems = OF_ARCHITECTURE.values() if folder == _AMDGPU else ()
        own = (next((name for name in names if name.startswith(stem)), "") for stem in stems)
        for name in dict.fromkeys([*names[:_MAX_FIRMWARE], *filter(None, own)]):
            # What is a folder itself is one of `folders`, or has nothing that is asked for.
            if not machine.listdir(f"{folder}/{name}"):
                yield f"{folder}/{name}"
    # That there is firmware at all: a container has none, and needs none.
    if names := machine.listdir("/lib/firmware"):
        plain = [name for name in names if not machine.listdir(f"/lib/firmware/{name}")]
        yield f"/lib/firmware/{(plain or ['regulatory.db'])[0]}"


def _boot(machine: Machine, scene: Scene) -> Iterator[tuple[str, bytes]]:
    kept = [text for text in scene.modules.command_line if _is_kept(text.partition("=")[0])]
    if machine.exists("/proc/cmdline"):
        yield "/proc/cmdline", f"{' '.join(kept)}\n".encode()
    if machine.exists(SECURE_BOOT):
        yield SECURE_BOOT, b"\x06\0\0\0" + (b"\x01" if scene.modules.secure_boot else b"\0")
    if text := machine.read(_LOCKDOWN, 64):
        yield _LOCKDOWN, f"{text}\n".encode()


def _is_kept(key: str) -> bool:
    return key in _PARAMETERS or key.partition(".")[0].replace("-", "_") in NAMES


def _joined(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
