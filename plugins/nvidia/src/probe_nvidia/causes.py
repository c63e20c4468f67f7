"""Each way to go wrong, once: NVML's codes, and the table of what they mean where they come from.

The numbers are part of NVML's interface (nvmlReturn_t in NVIDIA's NVML API reference).
"""

from __future__ import annotations

from probe_core.api import Unavailable, finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


def unasked(reason: str) -> Fact:
    """Return the fact that nobody knows whether the library works: it was not asked, and why."""
    return fact("library", "unknown", reason)


class Failure(Unavailable):
    """Why the library cannot be asked; `fact` is what follows for each GPU of NVIDIA's driver.

    Without a `fact` nothing does: CUDA does not need NVML.
    """

    def __init__(
        self, reason: str, *, code: str = "unavailable", fix: str = "", fact: Fact | None = None
    ) -> None:
        super().__init__(reason, code=code, fix=fix)
        self.fact = fact or unasked(reason)


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

    def filled(self, **words: object) -> Cause:
        """Return the cause with `words` in its sentences."""
        texts = (self.why, self.fix, self.inside, self.word)
        why, fix, inside, word = (text.format(**words) for text in texts)
        kept = {"what": self.what, "severity": self.severity}
        return Cause(self.step, self.code, why, fix, inside=inside, word=word, **kept)

    def fact(self, evidence: str, code: str | None = None) -> Fact:
        """Return the fact that its step is broken; unknown where it says nothing certain.

        `code` is the one that NVML's decides, where the cause has none of its own.
        """
        if self.step is None:
            return fact("responding", "unknown", evidence, self.word)
        return broken(self.step, str(self.code or code), evidence)

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
GPUS = "start the container with {option}"
_NO_DRIVER = "NVIDIA's driver is not installed: no library (libnvidia-ml.so.1, nvml.dll), no module"
_INSTALL = "install NVIDIA's driver for this system"
_MODPROBE = "modprobe nvidia; if that fails see dmesg (Secure Boot, DKMS build, new kernel)"
# /sys is the host's: a card without a driver there has none in any container.
_ON_HOST = {"fix": _INSTALL, "inside": f"on the host: {_INSTALL}"}
_UNSURE: tuple[None, None] = (None, None)
_LIBRARY: tuple[str, None] = ("library", None)
_SILENT = ("responding", "query-fails")


def unlisted(step: str, code: str, why: str, fix: str, severity: str = "info") -> Cause:
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
        GPUS,
        word="hidden-by-container",
    ),
    (INIT, "no library"): Cause(
        *_LIBRARY,
        "there is no libnvidia-ml.so.1 in {place}{though}",
        "install the driver's libraries (on Debian the package libnvidia-ml1)",
        inside=GPUS,
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
        inside=GPUS,
        word="device-nodes-missing",
    ),
    (INIT, "cut off"): Cause(
        *_LIBRARY,
        "the library cannot reach the kernel driver, though its traces are here",
        "modprobe nvidia; see dmesg",
        inside=GPUS,
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
    (LISTING, "excluded"): unlisted(
        "granted",
        "gpu-excluded",
        "the kernel driver was told to exclude it (NVreg_ExcludedGpus)",
        f"{_INTENDED}; else remove it from the options in /etc/modprobe.d",
    ),
    (LISTING, "slurm"): unlisted(
        "granted",
        "slurm-slice",
        "Slurm gave this job other GPUs, and its device cgroup keeps the rest away",
        "ask Slurm for more GPUs (--gres=gpu:N), if this job needs them",
    ),
    (LISTING, "container"): unlisted(
        "granted",
        "not-granted",
        "the container was given other GPUs; /sys and /proc show the host's",
        f"if it needs more GPUs, {GPUS}",
    ),
    (LISTING, "cgroup"): unlisted(
        "granted",
        "cgroup-denied",
        "a device cgroup refuses {node} to this process",
        "add the node to the allowed devices (DeviceAllow= of systemd, or the cgroup's rules)",
    ),
    (LISTING, "firmware"): unlisted(
        "driver",
        "gsp-firmware-missing",
        "the open kernel modules need the GSP firmware, and /lib/firmware/nvidia/{version} "
        "has none",
        "install it (firmware-nvidia-gsp, nvidia-firmware), rebuild the initramfs, reboot",
        "error",
    ),
    (LISTING, "silent"): unlisted(
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
