"""Says in what this process runs: a container or a Slurm job, which may have been given less."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine

__all__ = ["in_container", "in_slurm_job"]

_FILES = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
_VARIABLES = ("container", "KUBERNETES_SERVICE_HOST")
_CGROUPS = ("kubepods", "/docker/", "/docker-", "/libpod-", "/lxc/", "/lxc.payload")
_SLURM = ("slurmstepd.scope/job_", "/slurm/uid_")


def in_container(machine: Machine) -> bool:
    """Return whether this looks like the inside of a container."""
    if any(name in machine.environ for name in _VARIABLES) or any(map(machine.exists, _FILES)):
        return True
    return _in_cgroup(machine, _CGROUPS)


def in_slurm_job(machine: Machine) -> bool:
    """Return whether a Slurm job's step runs this process."""
    return "SLURM_JOB_ID" in machine.environ or _in_cgroup(machine, _SLURM)


def _in_cgroup(machine: Machine, marks: tuple[str, ...]) -> bool:
    text = machine.read("/proc/self/cgroup", 8192) or ""
    return any(mark in text for mark in marks)
