"""What went wrong: which cause it is, from NVML's code and what the machine's files show.

`library_failure` says why nvmlInit fails, `gpu_cause` why a GPU is not listed or not granted.
"""

from __future__ import annotations

from probe_core.sysfs.surroundings import container, gpu_option, in_slurm
from probe_nvidia.causes import (
    COUNT,
    DRIVER_NOT_LOADED,
    HANDLE,
    INIT,
    LIBRARY_NOT_FOUND,
    LISTING,
    LOST,
    NO_PERMISSION,
    TABLE,
    UNKNOWN,
    VERSION_MISMATCH,
    Failure,
    code_of,
    name_of,
    reason_of,
)
from probe_nvidia.scene import is_open, is_passthrough

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_nvidia.causes import Cause, Fact
    from probe_nvidia.scene import Scene


def library_failure(code: int, scene: Scene, detail: str | None = None) -> Failure:
    """Return the reason for nvmlInit's `code`; `detail` is what the loader said."""
    inside = container(scene.machine) is not None
    situation = _situation(code, scene, detail, inside)
    by_code = TABLE.get((INIT, code), TABLE[INIT, None])
    cause = TABLE[INIT, situation] if situation else by_code
    cause = cause.filled(**_words(code, scene, detail, inside))
    evidence = f"{name_of(code)} from nvmlInit: {detail or cause.why}"
    if code in LOST and len(scene.reachable()) == 1:
        follows = TABLE[HANDLE, code].fact(evidence)
    else:  # of several, nvmlInit does not tell which one is lost
        follows = cause.fact(evidence, by_code.code)
    reason = f"NVML cannot be used ({name_of(code)}): {cause.why}"
    fix = cause.inside if inside else cause.fix
    return Failure(reason, code=cause.word, fix=fix, fact=follows)


def gpu_cause(scene: Scene, identity: str, *, refused: bool = False) -> Cause:
    """Return why NVML does not list the GPU `identity`, a PCI id, which the kernel driver serves.

    With `refused` NVML lists it, and has no permission for it.
    """
    machine, version = scene.machine, scene.version
    if identity in scene.excluded():
        return TABLE[LISTING, "excluded"]
    if in_slurm(machine):
        return TABLE[LISTING, "slurm"]
    if container(machine) is not None:
        return TABLE[LISTING, "container"].filled(option=container_option(scene))
    if node := next(_denied(scene, identity), None):
        return TABLE[LISTING, "cgroup"].filled(node=node)
    if refused:
        return TABLE[HANDLE, NO_PERMISSION]
    if version and is_open(machine) and not _has_firmware(scene, version):
        return TABLE[LISTING, "firmware"].filled(version=version)
    return TABLE[LISTING, "silent"]


def excluded(identity: str) -> Fact:
    """Return the fact that the kernel driver was told to leave the GPU alone (NVreg_ExcludedGpus).

    `identity` is its PCI id.
    """
    evidence = f"/proc/driver/nvidia/gpus/{identity[4:]}/information: GPU Excluded: Yes"
    return TABLE[LISTING, "excluded"].fact(evidence)


def no_client(error: Exception) -> Failure:
    """Return the reason when nvidia-ml-py itself cannot be imported."""
    return Failure(
        f"nvidia-ml-py cannot be imported: {type(error).__name__}: {error}",
        code="client-missing",
        fix="pip install --upgrade nvidia-ml-py (not the package named pynvml)",
    )


def uncounted(error: Exception) -> Failure:
    """Return the reason when NVML starts, and does not report how many GPUs there are."""
    reason = reason_of(error, COUNT)
    return Failure(
        f"NVML does not report how many GPUs there are: {reason}",
        fix="look for NVRM and Xid in dmesg",
        fact=TABLE.get((COUNT, code_of(error)), TABLE[COUNT, None]).fact(reason),
    )


_NODES = ("/dev/nvidiactl",)
_MODULE_NODES = (*_NODES, "/dev/nvhost-gpu", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu")
_LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/lib/libnvidia-ml.so.1",
)
_FIRMWARE = "/lib/firmware"
_FIRMWARE_PATH = "/sys/module/firmware_class/parameters/path"
_EPERM = 1


def _situation(code: int, scene: Scene, detail: str | None, inside: bool) -> str | None:
    """Return what else the machine shows that decides why nvmlInit failed; None where nothing.

    `inside` says whether this is a container.
    """
    if code == UNKNOWN and inside:
        return "unknown in a container"
    if code not in (DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND):
        return None
    if detail and "No such file" not in detail:
        return "damaged"
    if (others := scene.other_drivers()) and not scene.served:
        return "passthrough" if any(map(is_passthrough, others)) else "other driver"
    if scene.served or (inside and (scene.soc or not scene.cards)):
        return _not_passed_in(code, scene, inside)
    if scene.soc is None:
        return None
    return "module without library" if code == LIBRARY_NOT_FOUND else "module without driver"


def _not_passed_in(code: int, scene: Scene, inside: bool) -> str:
    """Return what is missing here: the kernel driver is loaded, or this is a container."""
    has_nodes = any(map(scene.machine.exists, _MODULE_NODES if scene.soc else _NODES))
    # CDI sets "void" too, but then library and device nodes are there.
    visible = scene.machine.environ.get("NVIDIA_VISIBLE_DEVICES")
    if inside and not has_nodes and visible in ("none", "void", ""):
        return "container without GPUs"
    if code == LIBRARY_NOT_FOUND:
        return "no library"
    return "cut off" if has_nodes else "no nodes"


def _words(code: int, scene: Scene, detail: str | None, inside: bool) -> dict[str, object]:
    """Return what the sentences about nvmlInit name."""
    return {
        "code": code,
        "detail": detail,
        "option": container_option(scene),
        "others": ", ".join(scene.other_drivers()),
        "place": "the container" if inside else "this system",
        "though": ", though the kernel driver is loaded" if scene.served else "",
        "versions": _versions(scene) if code == VERSION_MISMATCH else "",
        "visible": scene.machine.environ.get("NVIDIA_VISIBLE_DEVICES") or "(empty)",
    }


def container_option(scene: Scene) -> str:
    """Return how a container of this engine is given the GPUs."""
    return gpu_option(scene.machine, "jetson" if scene.soc else "nvidia")


def _versions(scene: Scene) -> str:
    """Return both versions; the library's is in the name of the file that its link leads to."""
    kernel = f"kernel driver {scene.version or 'of unknown version'}"
    path = next(filter(scene.machine.exists, _LIBRARIES), None)
    library = scene.machine.realpath(path).rpartition(".so.")[2] if path else ""
    return f"{kernel}, library {library}" if "." in library else kernel


def _has_firmware(scene: Scene, version: str) -> bool:
    """Return whether a file of the GSP firmware is where the kernel looks for it."""
    machine = scene.machine
    own = machine.read(_FIRMWARE_PATH, 256)
    folders = [_FIRMWARE, f"{_FIRMWARE}/updates", "/usr/lib/firmware", *([own] if own else [])]
    if not any(map(machine.exists, folders)):
        return True  # nothing of the firmware can be seen, as in a recording
    listings = (machine.listdir(f"{folder}/nvidia/{version}") for folder in folders)
    return any(name.startswith("gsp") for names in listings for name in names)


def _denied(scene: Scene, identity: str) -> Iterator[str]:
    """Yield the GPU's nodes that a device cgroup refuses.

    access(2) says EPERM then, and EACCES where the file's mode refuses (inode_permission in
    fs/namei.c). `os.access` does not tell them apart; the C library does.
    """
    if not scene.machine.live:
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    for node in scene.nodes(identity):
        refused = libc.access(scene.machine.path(node).encode(), 6) != 0
        if refused and ctypes.get_errno() == _EPERM:
            yield node
