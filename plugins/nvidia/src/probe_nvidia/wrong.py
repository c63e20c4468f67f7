"""What went wrong: NVML's codes, and one table of what each of them means where it comes from.

`library_failure` says why nvmlInit fails, `gpu_cause` why a GPU has no handle or is not listed. The
numbers are part of NVML's interface (nvmlReturn_t in NVIDIA's NVML API reference).
"""

from __future__ import annotations

from probe_core.api import Unavailable, finding
from probe_core.sysfs.surroundings import container, in_slurm
from probe_nvidia.scene import is_open, is_passthrough

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_nvidia.scene import Scene

    Fact = dict[str, str]
    Finding = dict[str, Any]

INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
IRQ_ISSUE = 11
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
OPERATING_SYSTEM = 17
VERSION_MISMATCH = 18
NO_DATA = 21
ARGUMENT_VERSION = 25
DEPRECATED = 26
UNKNOWN = 999

_NAMES = dict(
    enumerate(
        "UNINITIALIZED INVALID_ARGUMENT NOT_SUPPORTED NO_PERMISSION ALREADY_INITIALIZED NOT_FOUND "
        "INSUFFICIENT_SIZE INSUFFICIENT_POWER DRIVER_NOT_LOADED TIMEOUT IRQ_ISSUE "
        "LIBRARY_NOT_FOUND FUNCTION_NOT_FOUND CORRUPTED_INFOROM GPU_IS_LOST RESET_REQUIRED "
        "OPERATING_SYSTEM LIB_RM_VERSION_MISMATCH IN_USE MEMORY NO_DATA VGPU_ECC_NOT_SUPPORTED "
        "INSUFFICIENT_RESOURCES FREQ_NOT_SUPPORTED ARGUMENT_VERSION_MISMATCH DEPRECATED NOT_READY "
        "GPU_NOT_FOUND INVALID_STATE RESET_TYPE_NOT_SUPPORTED".split(),
        start=1,
    )
) | {UNKNOWN: "UNKNOWN"}

LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED})
"""The device is gone until a reset: asking on would cost seconds and say nothing."""

MISSING = frozenset({FUNCTION_NOT_FOUND, ARGUMENT_VERSION, DEPRECATED})
"""The driver is older (or newer) than the call: an older form of the call may work."""

ORDINARY = MISSING | {INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, NO_DATA}
"""Answers of a healthy device to a question that it does not take: worth a reason, no alarm."""


def code_of(error: BaseException) -> int | None:
    """Return the NVML code that an exception of nvidia-ml-py carries; None for any other."""
    if type(error).__name__ == "NVMLLibraryMismatchError":
        return FUNCTION_NOT_FOUND  # nvidia-ml-py 13 says so of some functions, without a code
    value: Any = getattr(error, "value", None)
    return value if type(value) is int else None


def name_of(code: int) -> str:
    """Return the code's name as NVIDIA's documents write it ("NVML_ERROR_NOT_SUPPORTED")."""
    return f"NVML_ERROR_{_NAMES[code]}" if code in _NAMES else f"NVML error {code}"


def reason_of(error: Exception, call: str) -> str:
    """Return why a call failed: the code's name, or what else was raised."""
    code = code_of(error)
    return f"{name_of(code)} from {call}" if code is not None else f"{call}: {error!r}"


def fact(step: str, status: str, evidence: str, code: str | None = None) -> Fact:
    """Return one step's fact, as a sighting's ``step_facts`` have it."""
    words = {"step": step, "status": status, "evidence": evidence}
    return words | {"code": code} if code else words


def broken(step: str, code: str, evidence: str) -> Fact:
    """Return the fact that a step is broken, and why."""
    return fact(step, "broken", evidence, code)


class Cause:
    """One way to go wrong.

    `step` is the one that it breaks, None where it says nothing certain of a GPU; `code` is the
    fact's, None where NVML's code decides; `word` is the outcome's or finding's, where that is
    another. `why` and `fix` are sentences, `inside` is the fix in a container, where that is
    another; without `why` the evidence is the reason. `what` is a finding's, in which {} is the
    device's name.
    """

    __slots__ = ("code", "fix", "inside", "severity", "step", "what", "why", "word")

    def __init__(
        self,
        step: str | None,
        code: str | None,
        why: str = "",
        fix: str = "",
        *,
        inside: str | None = None,
        word: str | None = None,
        what: str = "",
        severity: str = "error",
    ) -> None:
        self.step = step
        self.code = code
        self.why = why
        self.fix = fix
        self.inside = inside or fix
        self.word = word or code or ""
        self.what = what
        self.severity = severity

    def fact(self, evidence: str) -> Fact:
        """Return the fact that its step is broken; unknown where it says nothing certain."""
        if self.step is None:
            return fact("responding", "unknown", evidence, self.word)
        return broken(self.step, str(self.code), evidence)

    def finding(
        self, name: str, device: str | None, evidence: str | None = None, why: str = ""
    ) -> Finding:
        """Return what a person should know of the device that people call `name`."""
        return finding(
            self.word,
            severity=self.severity,
            what=self.what.format(name),
            why=self.why or why or evidence or "",
            fix=self.fix,
            device=device,
            step=self.step,
            evidence=evidence,
        )


INIT, COUNT, HANDLE, LISTING, STATE = "nvmlInit", "nvmlDeviceGetCount", "handle", "listing", "state"
"""Where something goes wrong: two calls, the handle of a GPU, a GPU that NVML does not list, and
what the answers about a GPU say."""

_RESET = "drain the node and reset the GPU (nvidia-smi -r) or reboot; look for Xid in dmesg"
_INTENDED = "nothing, if that is intended"
_GPUS = "start the container with the GPUs: --gpus all, or --device nvidia.com/gpu=all (CDI)"
_NO_DRIVER = "NVIDIA's driver is not installed: no library (libnvidia-ml.so.1, nvml.dll), no module"
_INSTALL = "install NVIDIA's driver for this system"
_MODPROBE = "modprobe nvidia; if that fails see dmesg (Secure Boot, DKMS build, new kernel)"
# /sys is the host's: a card without a driver there has none in any container.
_ON_HOST = {"fix": _INSTALL, "inside": f"on the host: {_INSTALL}"}
_UNSURE: tuple[None, None] = (None, None)
_LIBRARY: tuple[str, None] = ("library", None)
_SILENT = ("responding", "query-fails")


def _unlisted(step: str, code: str, why: str, fix: str, severity: str = "info") -> Cause:
    """Return a cause for which NVML does not list a GPU; "info" where somebody meant it."""
    what = "NVML does not list {}"
    return Cause(step, code, why, fix, word="gpu-not-listed", what=what, severity=severity)


TABLE: dict[tuple[str, int | str | None], Cause] = {
    # NVML's code decides.
    (INIT, NOT_SUPPORTED): Cause(
        *_UNSURE,
        "the library does not support this machine's GPU",
        "check that the driver's release still supports this GPU (legacy branches)",
        word="not-supported",
    ),
    (INIT, NO_PERMISSION): Cause(
        "permission",
        "no-permission",
        "this user may not open the NVIDIA device nodes",
        "join the group that owns /dev/nvidia* (often video or render), then log in again",
    ),
    (INIT, TIMEOUT): Cause(
        *_SILENT,
        "the driver did not answer in time",
        "look for NVRM and Xid in dmesg; a GPU may hang and need a reset",
        word="driver-timeout",
    ),
    (INIT, IRQ_ISSUE): Cause(
        *_SILENT,
        "the kernel reports an interrupt problem with a GPU",
        "look for NVRM in dmesg; check BIOS, MSI and the slot, then reboot",
        word="irq-issue",
    ),
    (INIT, FUNCTION_NOT_FOUND): Cause(
        "library",
        "library-broken",
        "the library lacks a function that nvidia-ml-py needs",
        "check which libnvidia-ml.so.1 the loader finds (a stub? LD_LIBRARY_PATH?)",
        word="library-too-old",
    ),
    (INIT, GPU_IS_LOST): Cause(
        *_UNSURE,
        "a GPU fell off the bus",
        "drain the node and reboot; look for Xid 79 in dmesg; check power and seating",
        word="gpu-lost",
    ),
    (INIT, RESET_REQUIRED): Cause(
        *_UNSURE,
        "a GPU must be reset before it answers",
        "drain the node and reset it (nvidia-smi -r) or reboot",
        word="gpu-reset-required",
    ),
    (INIT, OPERATING_SYSTEM): Cause(
        "granted",
        "cgroup-denied",
        "the operating system blocked the request",
        "check the cgroup device rules and security policy of this service or container",
        word="blocked-by-system",
    ),
    (INIT, 20): Cause(
        *_UNSURE,
        "the library could not get memory",
        "free memory, then try again",
        word="out-of-memory",
    ),
    (INIT, 23): Cause(
        *_UNSURE,
        "the driver is out of resources",
        "end programs that use the GPU, then try again",
        word="out-of-resources",
    ),
    (INIT, None): Cause(
        *_UNSURE,
        "nvmlInit failed",
        "run nvidia-smi and look into dmesg",
        word="nvml-error-{code}",
    ),
    # Both codes have many causes; these are theirs where nothing else is to be seen.
    (INIT, DRIVER_NOT_LOADED): Cause(
        "library",
        "driver-not-loaded",
        "the library is installed, but NVIDIA's kernel driver is not loaded",
        _MODPROBE,
        inside=f"on the host: {_MODPROBE}",
    ),
    (INIT, LIBRARY_NOT_FOUND): Cause(
        "library", "library-missing", _NO_DRIVER, **_ON_HOST, word="driver-not-installed"
    ),
    (INIT, VERSION_MISMATCH): Cause(
        "library",
        "version-mismatch",
        "kernel driver and library differ in version ({versions})",
        "reboot (or unload and load the nvidia modules) after a driver upgrade",
        inside="remove the driver's libraries from the image: the host's belong into the container",
    ),
    (INIT, UNKNOWN): Cause(
        *_SILENT,
        "the driver gives no cause",
        "look for NVRM and Xid in dmesg; check who may open /dev/nvidia*",
        word="unknown-error",
    ),
    # What else the machine shows decides.
    (INIT, "damaged"): Cause(
        "library",
        "library-broken",
        "the library is installed and cannot be loaded: {detail}",
        "reinstall the driver's libraries: for this processor, of the kernel driver's version",
    ),
    (INIT, "passthrough"): Cause(
        *_LIBRARY,
        "the kernel driver {others} reserves the GPU for virtual machines",
        "use it in the virtual machine, or bind it to nvidia again",
        word="reserved-for-vm",
    ),
    (INIT, "other driver"): Cause(
        *_LIBRARY,
        "the kernel driver {others} holds the GPU, and NVIDIA's library needs NVIDIA's driver",
        "install NVIDIA's driver and keep {others} from loading (blacklist)",
        word="other-driver",
    ),
    (INIT, "container without GPUs"): Cause(
        *_LIBRARY,
        "the container was started without GPUs (NVIDIA_VISIBLE_DEVICES={visible})",
        _GPUS,
        word="hidden-by-container",
    ),
    (INIT, "no library"): Cause(
        *_LIBRARY,
        "there is no libnvidia-ml.so.1 in {place}{though}",
        "install the driver's libraries (on Debian the package libnvidia-ml1)",
        inside=_GPUS,
        word="library-missing",
    ),
    (INIT, "module without library"): Cause(
        *_LIBRARY, _NO_DRIVER, **_ON_HOST, word="library-missing"
    ),
    (INIT, "module without driver"): Cause(
        *_LIBRARY,
        "the nvgpu driver is not loaded",
        "modprobe nvgpu; see dmesg",
        word="driver-not-loaded",
    ),
    (INIT, "no nodes"): Cause(
        *_LIBRARY,
        "the device node /dev/nvidiactl is missing",
        "as root: nvidia-modprobe -c 0 -u, or run nvidia-smi",
        inside=_GPUS,
        word="device-nodes-missing",
    ),
    (INIT, "cut off"): Cause(
        *_LIBRARY,
        "the library cannot reach the kernel driver, though its traces are here",
        "modprobe nvidia; see dmesg",
        inside=_GPUS,
        word="driver-not-loaded",
    ),
    (INIT, "unknown in a container"): Cause(
        "granted",
        "cgroup-denied",
        "the container seems cut off from its GPUs' nodes, as after systemctl daemon-reload",
        "restart the container; CDI or the cgroupfs driver prevents it "
        "(nvidia-container-toolkit#251)",
        word="unknown-error",
    ),
    (COUNT, TIMEOUT): Cause(*_SILENT),
    (COUNT, IRQ_ISSUE): Cause(*_SILENT),
    (COUNT, UNKNOWN): Cause(*_SILENT),
    (COUNT, None): Cause(*_UNSURE),
    (HANDLE, GPU_IS_LOST): Cause("responding", "gpu-lost", fix=_RESET, what="{} fails"),
    (HANDLE, RESET_REQUIRED): Cause(
        "responding", "gpu-reset-required", fix=_RESET, what="{} fails"
    ),
    # NVML counts all GPUs of the system, also those that this process may not use
    # (nvmlDeviceGetCount_v2 in NVIDIA's NVML API reference).
    (HANDLE, NO_PERMISSION): Cause(
        "granted",
        "not-granted",
        "",
        f"{_INTENDED}; else check the mode of its /dev/nvidia node and the device cgroup",
        word="gpu-not-listed",
        what="{} is not granted to this process",
        severity="info",
    ),
    (HANDLE, None): Cause(*_SILENT, fix=_RESET, word="gpu-errors", what="{} fails"),
    (LISTING, "excluded"): _unlisted(
        "granted",
        "gpu-excluded",
        "the kernel driver was told to exclude it (NVreg_ExcludedGpus)",
        f"{_INTENDED}; else remove it from the options in /etc/modprobe.d",
    ),
    (LISTING, "slurm"): _unlisted(
        "granted",
        "slurm-slice",
        "Slurm gave this job other GPUs, and its device cgroup keeps the rest away",
        "ask Slurm for more GPUs (--gres=gpu:N), if this job needs them",
    ),
    (LISTING, "container"): _unlisted(
        "granted",
        "not-granted",
        "the container was given other GPUs; /sys and /proc show the host's",
        "start the container with more GPUs (--gpus, or CDI devices), if it needs them",
    ),
    (LISTING, "cgroup"): _unlisted(
        "granted",
        "cgroup-denied",
        "a device cgroup refuses {node} to this process",
        "add the node to the allowed devices (DeviceAllow= of systemd, or the cgroup's rules)",
    ),
    (LISTING, "firmware"): _unlisted(
        "driver",
        "gsp-firmware-missing",
        "the open kernel modules need the GSP firmware, and /lib/firmware/nvidia/{version} "
        "has none",
        "install it (firmware-nvidia-gsp, nvidia-firmware), rebuild the initramfs, reboot",
        "error",
    ),
    (LISTING, "silent"): _unlisted(
        "responding",
        "not-responding",
        "the kernel driver has it, no container or job limits this process",
        "look for NVRM, RmInitAdapter and Xid in dmesg; reset the GPU or reboot",
        "warning",
    ),
    # Of the steps that an answer breaks, those with more to say than the core, which makes a
    # finding of each.
    (STATE, "gpu-lost"): Cause(
        "responding", "gpu-lost", fix=_RESET, what="{} does not answer any more"
    ),
    (STATE, "gpu-reset-required"): Cause(
        "responding", "gpu-reset-required", fix=_RESET, what="{} does not answer any more"
    ),
    (STATE, "compute-prohibited"): Cause(
        "granted",
        "compute-prohibited",
        "its compute mode is PROHIBITED",
        f"{_INTENDED}; else as root: nvidia-smi -c DEFAULT",
        what="no program may compute on {}",
        severity="info",
    ),
    (STATE, "mig-without-instances"): Cause(
        "granted",
        "mig-without-instances",
        "in MIG mode programs can use instances only, and none was created or granted",
        "create instances (nvidia-smi mig -cgi … -C), or turn MIG off (-mig 0)",
        what="{} is in MIG mode and has no instance",
        severity="info",
    ),
    (STATE, "fabric-not-ready"): Cause(
        "runtime",
        "fabric-not-ready",
        "its NVSwitch fabric is not set up: the fabric manager does that",
        "start nvidia-fabricmanager, of the driver's version; see its log",
        what="CUDA will not start on {} (error 802, system not yet initialized)",
        severity="warning",
    ),
    (STATE, "gpu-errors"): Cause(
        "responding",
        "gpu-errors",
        fix=_RESET,
        what="{} answers some questions with errors",
    ),
    (STATE, "vgpu-guest"): Cause(
        None,
        None,
        "the hypervisor divides the card (NVIDIA vGPU): the chip's peak is an upper bound",
        _INTENDED,
        word="vgpu-guest",
        what="{} is a virtual GPU: its memory is a share, its speed is shared in time",
        severity="info",
    ),
}
"""Where, and NVML's code or the situation → the cause. None stands for any other code."""


class Failure(Unavailable):
    """Why the library cannot be asked; `fact` is what follows for each GPU of NVIDIA's driver."""

    def __init__(self, reason: str, *, code: str, fix: str, fact: Fact) -> None:
        super().__init__(reason, code=code, fix=fix)
        self.fact = fact


def library_failure(code: int, scene: Scene, detail: str | None = None) -> Failure:
    """Return the reason for nvmlInit's `code`; `detail` is what the loader said."""
    inside = container(scene.machine) is not None
    plain = TABLE.get((INIT, code), TABLE[INIT, None])
    cause = TABLE[INIT, situation] if (situation := _situation(code, scene, detail)) else plain
    fix = cause.inside if inside else cause.fix
    words = _words(code, scene, detail, "the container" if inside else "this system")
    why, fix, word = (text.format(**words) for text in (cause.why, fix, cause.word))
    evidence = f"{name_of(code)} from nvmlInit: {detail or why}"
    if code in LOST:  # nvmlInit does not tell which one
        alone = len(scene.reachable()) == 1
        follows = fact("responding", "broken" if alone else "unknown", evidence, word)
    elif cause.step is None:
        follows = fact("responding", "unknown", evidence, word)
    else:
        follows = broken(cause.step, str(cause.code or plain.code), evidence)
    reason = f"NVML cannot be used ({name_of(code)}): {why}"
    return Failure(reason, code=word, fix=fix, fact=follows)


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
        return TABLE[LISTING, "container"]
    if node := next(_denied(scene, identity), None):
        return _filled(TABLE[LISTING, "cgroup"], node=node)
    if refused:
        return TABLE[HANDLE, NO_PERMISSION]
    if version and is_open(machine) and not _has_firmware(scene, version):
        return _filled(TABLE[LISTING, "firmware"], version=version)
    return TABLE[LISTING, "silent"]


def _filled(cause: Cause, **words: str) -> Cause:
    """Return the cause with `words` in its sentence."""
    why = cause.why.format(**words)
    return _unlisted(str(cause.step), str(cause.code), why, cause.fix, cause.severity)


def excluded(identity: str) -> Fact:
    """Return the fact that the kernel driver was told to leave the GPU alone (NVreg_ExcludedGpus).

    `identity` is its PCI id.
    """
    evidence = f"/proc/driver/nvidia/gpus/{identity[4:]}/information: GPU Excluded: Yes"
    return TABLE[LISTING, "excluded"].fact(evidence)


def no_client(error: Exception) -> Failure:
    """Return the reason when nvidia-ml-py itself cannot be imported."""
    reason = f"nvidia-ml-py cannot be imported: {type(error).__name__}: {error}"
    return Failure(
        reason,
        code="client-missing",
        fix="pip install --upgrade nvidia-ml-py (not the package named pynvml)",
        fact=fact("library", "unknown", reason),  # CUDA does not need it
    )


def as_failure(error: Unavailable) -> Failure:
    """Return the error as one from which something follows for each GPU."""
    if isinstance(error, Failure):
        return error
    unknown = fact("library", "unknown", error.reason)
    return Failure(error.reason, code=error.code, fix=error.fix or "", fact=unknown)


def uncounted(error: Exception) -> Failure:
    """Return the reason when NVML starts, and does not report how many GPUs there are."""
    reason = reason_of(error, COUNT)
    return Failure(
        f"NVML does not report how many GPUs there are: {reason}",
        code="unavailable",
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


def _situation(code: int, scene: Scene, detail: str | None) -> str | None:
    """Return what else the machine shows that decides why nvmlInit failed; None where nothing."""
    inside = container(scene.machine) is not None
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


def _words(code: int, scene: Scene, detail: str | None, place: str) -> dict[str, object]:
    """Return what the sentences about nvmlInit name."""
    return {
        "code": code,
        "detail": detail,
        "others": ", ".join(scene.other_drivers()),
        "place": place,
        "though": ", though the kernel driver is loaded" if scene.served else "",
        "versions": _versions(scene) if code == VERSION_MISMATCH else "",
        "visible": scene.machine.environ.get("NVIDIA_VISIBLE_DEVICES") or "(empty)",
    }


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
