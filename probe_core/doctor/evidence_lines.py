"""Which lines, names and variables of a machine say something of drivers, and of nobody."""

from __future__ import annotations

from probe_core.readiness.distributions import os_release
from probe_core.readiness.unbound import MODULES as DRIVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.machine import Machine
    from probe_core.readiness.process import Process

__all__ = [
    "ENVIRONMENT",
    "FILES",
    "LIBRARIES",
    "MODULES",
    "about_modules",
    "environment",
    "os_lines",
    "parameters",
    "people",
]

MODULES = frozenset(
    {
        *DRIVERS.values(),
        *"nvidia_uvm nvidia_drm nvidia_modeset nouveau nova_core radeon i915 xe rknpu".split(),
        *"panthor panfrost vfio_pci nvgpu".split(),
    }
)
"""The kernel modules that a bundle names."""

LIBRARIES = (
    "libnvidia-ml.so.1",
    "libcuda.so.1",
    "libze_intel_gpu.so.1",
    "libhsa-runtime64.so.1",
    "libhsa-runtime64.so",
    "libamdhip64.so",
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
)
"""The libraries of vendors that readiness looks for."""

FILES = (
    "/proc/driver/nvidia/version",
    "/proc/driver/nvidia/params",
    "/proc/modules",
    "/proc/devices",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/dmesg_restrict",
    "/proc/self/attr/current",
    "/sys/fs/selinux/enforce",
    "/sys/power/suspend_stats/success",
    "/sys/module/amdgpu/version",
    "/sys/module/nvidia/version",
    "/sys/kernel/security/lockdown",
    "/opt/rocm/.info/version",
    "/etc/nvidia/gridd.conf",
    "/usr/local/cuda/compat/libcuda.so.1",
)
"""Small texts that hold nobody's name; /proc/modules is masked by nothing, as in any recording."""

# A variable to what stands for its value; None keeps it. Paths could name a person.
ENVIRONMENT: dict[str, str] = {
    "CUDA_MPS_PIPE_DIRECTORY": "/run/nvidia-mps",
}
_WHOLE = ("HSA_OVERRIDE_GFX_VERSION", "CUDA_VERSION", "SNAP_NAME")

_PARAMETERS = (
    "nomodeset module_blacklist= modprobe.blacklist= pci= iommu= amd_iommu= intel_iommu= amdgpu."
    " radeon. nvidia. nvidia-drm. nouveau. i915. xe. vfio-pci. video="
).split()
_OS_KEYS = ("ID", "ID_LIKE", "VERSION_ID")
_GROUPS = ("render", "video")
_USER = 1000
"""Stands for a person's number, as in a recording's /proc/self/status."""


def os_lines(machine: Machine) -> bytes:
    """Return the lines of os-release that decide which commands a distribution takes."""
    fields = os_release(machine)
    lines = [f'{key}="{fields[key]}"\n' for key in _OS_KEYS if key in fields]
    return "".join(lines).encode()


def parameters(command_line: Iterable[str]) -> bytes:
    """Return the kernel's parameters about drivers: others hold disks, hosts and keys."""
    chosen = [word for word in command_line if word.startswith(tuple(_PARAMETERS))]
    return f"{' '.join(chosen)}\n".encode()


def about_modules(text: str) -> bytes:
    """Return the lines of modules.dep or modules.builtin about the modules that a bundle names."""
    chosen = [line for line in text.splitlines() if _module(line.partition(":")[0]) in MODULES]
    return "".join(f"{line}\n" for line in chosen).encode()


def _module(path: str) -> str:
    return path.rpartition("/")[2].partition(".ko")[0].replace("-", "_")


def people(process: Process) -> dict[str, bytes]:
    """Return which of the usual groups are there and list this user, without his name."""
    if process.user is None:
        return {}
    number = process.user if process.user < _USER else _USER
    name = "root" if number == 0 else "user"
    groups = process.listed_groups()
    lines = [
        f"{group}:x:{groups[group][0]}:{name if groups[group][1] else ''}\n"
        for group in _GROUPS
        if group in groups
    ]
    return {
        "/etc/passwd": f"{name}:x:{number}:{number}::/:/bin/sh\n".encode(),
        "/etc/group": "".join(lines).encode(),
    }


def environment(machine: Machine) -> dict[str, str]:
    """Return the variables that causes are told by, beside those of every recording."""
    return {name: machine.environ[name] for name in _WHOLE if name in machine.environ}
