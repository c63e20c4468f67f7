"""Why NVML does not list a GPU that the kernel driver serves: what else the machine shows of it."""

from __future__ import annotations

from probe_core.sysfs.surroundings import container, in_slurm
from probe_nvidia import facts, procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_nvidia.facts import Fact
    from probe_nvidia.scene import Scene

__all__ = ["Cause", "excluded", "refused", "unlisted"]

_FIRMWARE = "/lib/firmware"
_FIRMWARE_PATH = "/sys/module/firmware_class/parameters/path"
_EPERM = 1

_GRES = "ask Slurm for more GPUs (--gres=gpu:N), if this job needs them"
_GPUS = "start the container with more GPUs (--gpus, or CDI devices), if it needs them"


class Cause:
    """Why a GPU is kept from this process: the step that is broken, and what helps.

    `severity` is "info" where somebody restricted it on purpose.
    """

    __slots__ = ("code", "fix", "reason", "severity", "step")

    def __init__(self, step: str, code: str, reason: str, fix: str, severity: str = "info") -> None:
        self.step = step
        self.code = code
        self.reason = reason
        self.fix = fix
        self.severity = severity

    def fact(self, evidence: str) -> Fact:
        """Return the cause as a fact of the step that it breaks."""
        return facts.broken(self.step, self.code, evidence)


def excluded() -> Cause:
    """Return the cause of a GPU that the administrator excluded."""
    reason = "the kernel driver was told to exclude it (NVreg_ExcludedGpus)"
    fix = "nothing, if that is intended; else remove it from the options in /etc/modprobe.d"
    return Cause("granted", "gpu-excluded", reason, fix)


def unlisted(scene: Scene, identity: str) -> Cause:
    """Return why NVML leaves out the GPU `identity`, a PCI id, which the kernel driver serves."""
    return _restricted(scene, identity) or _by_driver(scene)


def refused(scene: Scene, identity: str) -> Cause:
    """Return why NVML has no permission for the GPU `identity`, a PCI id."""
    reason = "NVML has no permission for it"
    fix = "if it is needed, let this process open its /dev/nvidia node: its mode, the device cgroup"
    return _restricted(scene, identity) or Cause("granted", "not-granted", reason, fix)


def _restricted(scene: Scene, identity: str) -> Cause | None:
    """Return the rule that keeps the GPU away; None where nothing shows one."""
    machine = scene.machine
    if in_slurm(machine):
        reason = "Slurm gave this job other GPUs, and its device cgroup keeps the rest away"
        return Cause("granted", "slurm-slice", reason, _GRES)
    if container(machine) is not None:
        reason = "the container was given other GPUs; /sys and /proc show the host's"
        return Cause("granted", "not-granted", reason, _GPUS)
    node = next(_denied(scene, identity), None)
    if node is None:
        return None
    reason = f"a device cgroup refuses {node} to this process"
    fix = "add the node to the allowed devices (DeviceAllow= of systemd, or the cgroup's rules)"
    return Cause("granted", "cgroup-denied", reason, fix)


def _by_driver(scene: Scene) -> Cause:
    """Return what keeps the driver from starting a GPU that no rule keeps away."""
    version = scene.version
    if version and procfs.is_open(scene.machine) and not _has_firmware(scene, version):
        reason = f"the open kernel modules need the GSP firmware, and {_FIRMWARE}/nvidia/{version}"
        fix = "install it (firmware-nvidia-gsp, nvidia-firmware), rebuild the initramfs, reboot"
        reason += " has none"
        return Cause("driver", "gsp-firmware-missing", reason, fix, "error")
    reason = "the kernel driver has it, no container or job limits this process"
    fix = "look for NVRM, RmInitAdapter and Xid in dmesg; reset the GPU or reboot"
    return Cause("responding", "not-responding", reason, fix, "warning")


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
