"""Says in what this process runs: a container or a Slurm job, which may have been given less.

/proc and /sys are the host's in a container: a bound driver without a device node is its doing.
"""

from __future__ import annotations

from probe_core.machine import surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = ["container", "gpu_option", "in_slurm"]


def container(machine: Machine) -> str | None:
    """Return the kind of container that this process is in; None in none that shows itself.

    kubernetes, apptainer, docker, podman, lxc, systemd-nspawn, flatpak, snap, or "container" where
    nothing names its kind.
    """
    return surroundings.container(machine)


def gpu_option(machine: Machine, vendor: str) -> str:
    """Return how a container of this process's engine is given the GPUs of a vendor, for a fix.

    ``{node}`` stands in it for a device node where the vendor has no option of its own.
    """
    from probe_core.machine.engines import option

    return option(vendor, container(machine) or "")


def in_slurm(machine: Machine) -> bool:
    """Return whether this process belongs to a Slurm job."""
    return surroundings.in_slurm(machine)
