"""Why NVIDIA's library cannot be asked: one sentence, one next step and one fact for each way."""

from __future__ import annotations

from probe_core.api import Unavailable
from probe_core.sysfs.surroundings import container
from probe_nvidia import facts
from probe_nvidia.codes import (
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    IRQ_ISSUE,
    LIBRARY_NOT_FOUND,
    NO_PERMISSION,
    OPERATING_SYSTEM,
    RESET_REQUIRED,
    TIMEOUT,
    UNKNOWN,
    VERSION_MISMATCH,
    name_of,
)
from probe_nvidia.scene import is_passthrough

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_nvidia.facts import Fact
    from probe_nvidia.scene import Scene

__all__ = ["PLAIN", "Failure", "no_client", "uncounted", "why_not"]

PLAIN = {
    3: (
        "not-supported",
        "the library does not support this machine's GPU",
        "check that the driver's release still supports this GPU (legacy branches)",
    ),
    4: (
        "no-permission",
        "this user may not open the NVIDIA device nodes",
        "join the group that owns /dev/nvidia* (often video or render), then log in again",
    ),
    10: (
        "driver-timeout",
        "the driver did not answer in time",
        "look for NVRM and Xid in dmesg; a GPU may hang and need a reset",
    ),
    11: (
        "irq-issue",
        "the kernel reports an interrupt problem with a GPU",
        "look for NVRM in dmesg; check BIOS, MSI and the slot, then reboot",
    ),
    13: (
        "library-too-old",
        "the library lacks a function that nvidia-ml-py needs",
        "check which libnvidia-ml.so.1 the loader finds (a stub? LD_LIBRARY_PATH?)",
    ),
    15: (
        "gpu-lost",
        "a GPU fell off the bus",
        "drain the node and reboot; look for Xid 79 in dmesg; check power and seating",
    ),
    16: (
        "gpu-reset-required",
        "a GPU must be reset before it answers",
        "drain the node and reset it (nvidia-smi -r) or reboot",
    ),
    17: (
        "blocked-by-system",
        "the operating system blocked the request",
        "check the cgroup device rules and security policy of this service or container",
    ),
    20: ("out-of-memory", "the library could not get memory", "free memory, then try again"),
    23: (
        "out-of-resources",
        "the driver is out of resources",
        "end programs that use the GPU, then try again",
    ),
}
"""NVML code of nvmlInit → (code, why, fix), where the rest of the machine does not matter."""

# NVML code of nvmlInit → the step that it says is broken, and the cause. Other codes say nothing
# certain of a GPU.
_STEPS: dict[int, tuple[str, str]] = {
    NO_PERMISSION: ("permission", "no-permission"),
    DRIVER_NOT_LOADED: ("library", "driver-not-loaded"),
    TIMEOUT: ("responding", "query-fails"),
    IRQ_ISSUE: ("responding", "query-fails"),
    LIBRARY_NOT_FOUND: ("library", "library-missing"),
    FUNCTION_NOT_FOUND: ("library", "library-broken"),
    OPERATING_SYSTEM: ("granted", "cgroup-denied"),
    VERSION_MISMATCH: ("library", "version-mismatch"),
    UNKNOWN: ("responding", "query-fails"),
}
_OF_ONE_GPU = (GPU_IS_LOST, RESET_REQUIRED)

_NODES = ("/dev/nvidiactl",)
_SOC_NODES = (*_NODES, "/dev/nvhost-gpu", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu")

_RESTART = "nvidia-container-toolkit#251"
_GPUS = "start the container with the GPUs: --gpus all, or --device nvidia.com/gpu=all (CDI)"
_LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/lib/libnvidia-ml.so.1",
)


class Failure(Unavailable):
    """Why the library cannot be asked; `fact` is what follows for each GPU of NVIDIA's driver."""

    def __init__(self, reason: str, *, code: str, fix: str, fact: Fact) -> None:
        super().__init__(reason, code=code, fix=fix)
        self.fact = fact


def no_client(error: Exception) -> Failure:
    """Return the reason when nvidia-ml-py itself cannot be imported."""
    reason = f"nvidia-ml-py cannot be imported: {type(error).__name__}: {error}"
    return Failure(
        reason,
        code="client-missing",
        fix="pip install --upgrade nvidia-ml-py (not the package named pynvml)",
        fact=facts.fact("library", "unknown", reason),  # CUDA does not need it
    )


def uncounted(code: int | None, reason: str) -> Failure:
    """Return the reason when NVML starts, and does not report how many GPUs there are."""
    fact = facts.fact("responding", "unknown", reason)
    if code in _STEPS and _STEPS[code][0] == "responding":
        fact = facts.broken("responding", "query-fails", reason)
    return Failure(
        f"NVML does not report how many GPUs there are: {reason}",
        code="unavailable",
        fix="look for NVRM and Xid in dmesg",
        fact=fact,
    )


def why_not(code: int, scene: Scene, detail: str | None = None) -> Failure:
    """Return the reason for nvmlInit's `code`; `detail` is what the loader said."""
    if code in (LIBRARY_NOT_FOUND, DRIVER_NOT_LOADED):
        short, cause, fix = _not_there(code, scene, detail)
    elif code == VERSION_MISMATCH:
        short, cause, fix = _mismatch(scene)
    elif code == UNKNOWN:
        short, cause, fix = _unknown(scene)
    else:
        short, cause, fix = PLAIN.get(
            code, (f"nvml-error-{code}", "nvmlInit failed", "run nvidia-smi and look into dmesg")
        )
    reason = f"NVML cannot be used ({name_of(code)}): {cause}"
    return Failure(reason, code=short, fix=fix, fact=_fact(code, short, scene, cause, detail))


def _fact(code: int, short: str, scene: Scene, cause: str, detail: str | None) -> Fact:
    evidence = f"{name_of(code)} from nvmlInit: {detail or cause}"
    if code in _OF_ONE_GPU:  # nvmlInit does not tell which one
        alone = len(scene.reachable()) == 1
        return facts.fact("responding", "broken" if alone else "unknown", evidence, short)
    if code not in _STEPS:
        return facts.fact("responding", "unknown", evidence, short)
    step, own = _STEPS[code]
    if code == UNKNOWN and container(scene.machine) is not None:
        step, own = "granted", "cgroup-denied"
    return facts.broken(step, short if short == "library-broken" else own, evidence)


def _not_there(code: int, scene: Scene, detail: str | None) -> tuple[str, str, str]:
    """Library or driver missing: what else is there tells which of many causes it is."""
    library = code == LIBRARY_NOT_FOUND
    other_drivers = scene.other_drivers()
    inside = container(scene.machine) is not None
    if detail and "No such file" not in detail:
        return (
            "library-broken",
            f"the library is installed and cannot be loaded: {detail}",
            "reinstall the driver's libraries: for this processor, of the kernel driver's version",
        )
    if other_drivers and not scene.served:
        return _other_driver(", ".join(other_drivers))
    if scene.served or (inside and (scene.soc or not scene.cards)):
        return _inside(library, scene)
    if scene.soc and not library:
        return "driver-not-loaded", "the nvgpu driver is not loaded", "modprobe nvgpu; see dmesg"
    # /sys is the host's: a card without a driver there has none in any container.
    where = "on the host: " if inside else ""
    if library:
        return (
            "library-missing" if scene.soc else "driver-not-installed",
            "NVIDIA's driver is not installed: no library (libnvidia-ml.so.1, nvml.dll), no module",
            f"{where}install NVIDIA's driver for this system",
        )
    return (
        "driver-not-loaded",
        "the library is installed, but NVIDIA's kernel driver is not loaded",
        f"{where}modprobe nvidia; if that fails see dmesg (Secure Boot, DKMS build, new kernel)",
    )


def _other_driver(names: str) -> tuple[str, str, str]:
    if any(map(is_passthrough, names.split(", "))):
        cause = f"the kernel driver {names} reserves the GPU for virtual machines"
        return "reserved-for-vm", cause, "use it in the virtual machine, or bind it to nvidia again"
    cause = f"the kernel driver {names} holds the GPU, and NVIDIA's library needs NVIDIA's driver"
    return (
        "other-driver",
        cause,
        f"install NVIDIA's driver and keep {names} from loading (blacklist)",
    )


def _inside(library: bool, scene: Scene) -> tuple[str, str, str]:
    """Say what was not passed in: the kernel driver is loaded, or this is a container."""
    machine, inside = scene.machine, container(scene.machine) is not None
    visible = machine.environ.get("NVIDIA_VISIBLE_DEVICES")
    has_nodes = any(map(machine.exists, _SOC_NODES if scene.soc else _NODES))
    if visible in ("none", "void", "") and inside and not has_nodes:
        # CDI sets "void" too, but then library and device nodes are there.
        setting = f"NVIDIA_VISIBLE_DEVICES={visible or '(empty)'}"
        return "hidden-by-container", f"the container was started without GPUs ({setting})", _GPUS
    if library:
        cause = "there is no libnvidia-ml.so.1 in " + ("the container" if inside else "this system")
        cause += ", though the kernel driver is loaded" if scene.served else ""
        install = "install the driver's libraries (on Debian the package libnvidia-ml1)"
        return "library-missing", cause, _GPUS if inside else install
    if not has_nodes:
        fix = _GPUS if inside else "as root: nvidia-modprobe -c 0 -u, or run nvidia-smi"
        return "device-nodes-missing", "the device node /dev/nvidiactl is missing", fix
    cause = "the library cannot reach the kernel driver, though its traces are here"
    return "driver-not-loaded", cause, _GPUS if inside else "modprobe nvidia; see dmesg"


def _mismatch(scene: Scene) -> tuple[str, str, str]:
    library = _library_version(scene)
    versions = f"kernel driver {scene.version or 'of unknown version'}"
    versions += f", library {library}" if library else ""
    fix = "reboot (or unload and load the nvidia modules) after a driver upgrade"
    if container(scene.machine) is not None:
        fix = "remove the driver's libraries from the image: the host's belong into the container"
    return "version-mismatch", f"kernel driver and library differ in version ({versions})", fix


def _library_version(scene: Scene) -> str | None:
    """Return the version in the name of the file that the library's link leads to."""
    for path in _LIBRARIES:
        if scene.machine.exists(path):
            version = scene.machine.realpath(path).rpartition(".so.")[2]
            return version if "." in version else None
    return None


def _unknown(scene: Scene) -> tuple[str, str, str]:
    if container(scene.machine) is not None:
        cause = "the container seems cut off from its GPUs' nodes, as after systemctl daemon-reload"
        fix = f"restart the container; CDI or the cgroupfs driver prevents it ({_RESTART})"
        return "unknown-error", cause, fix
    cause = "the driver gives no cause"
    return "unknown-error", cause, "look for NVRM and Xid in dmesg; check who may open /dev/nvidia*"
