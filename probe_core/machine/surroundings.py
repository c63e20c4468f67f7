"""What a process runs inside: a container, a job, a virtual machine; read from files alone.

/proc and /sys are the host's in a container, so that a bound driver without a device node is the
container's doing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = [
    "BATCH_SYSTEMS",
    "ENGINES",
    "SIGNS",
    "VARIABLES",
    "cgroup_kind",
    "cgroup_text",
    "container",
    "in_slurm",
    "is_wsl",
    "service_of",
]

SIGNS = ("/.dockerenv", "/run/.containerenv", "/.flatpak-info", "/.singularity.d")
"""Files whose being there shows a container; their text has ids, and is not read."""

# PBS and LSF administrators' guides, condor_submit(1), flux-run(1).
BATCH_SYSTEMS = {
    "PBS_JOBID": "PBS: `qsub -l select=1:ngpus=1`",
    "LSB_JOBID": "LSF: `bsub -gpu num=1`",
    "_CONDOR_JOB_AD": "HTCondor: `request_gpus = 1` in the submit file",
    "FLUX_JOB_ID": "Flux: `flux run -g1`",
}
"""Variable of a batch system's jobs, Slurm's excepted, to how a job requests a GPU of it."""

VARIABLES = ("container", "KUBERNETES_SERVICE_HOST", "SLURM_JOB_ID", "SNAP", *BATCH_SYSTEMS)
"""Environment variables whose being there shows what the process is in."""

_LIMIT = 16 << 10

ENGINES = ("docker", "podman", "lxc", "systemd-nspawn", "rkt", "oci")
"""Words of the variable `container` and of /run/systemd/container (systemd, CONTAINER_INTERFACE)"""


def cgroup_text(machine: Machine) -> str:
    """Return /proc/self/cgroup; "" where it cannot be read."""
    return machine.read("/proc/self/cgroup", _LIMIT) or ""


def container(machine: Machine, cgroup: str | None = None) -> str | None:
    """Return the kind of container that this process is in; None in none that shows itself.

    kubernetes, apptainer, docker, podman, lxc, systemd-nspawn, flatpak, snap, or "container" where
    nothing names its kind. `cgroup` is `cgroup_text`, where it was read already. A Linux machine's;
    None of others. ``0::/`` alone is no sign: it says that there is a cgroup namespace.
    """
    if machine.os != "linux":
        return None
    environ, exists = machine.environ, machine.exists
    text = cgroup_text(machine) if cgroup is None else cgroup
    if "KUBERNETES_SERVICE_HOST" in environ or "kubepods" in text:
        return "kubernetes"
    if exists("/.flatpak-info"):
        return "flatpak"
    if exists("/.singularity.d"):  # Singularity's, too; the variables reach jobs outside of it
        return "apptainer"
    if exists("/run/.containerenv"):
        return "podman"
    if exists("/.dockerenv"):
        return "docker"
    kind = environ.get("container") or machine.read("/run/systemd/container", 64)
    if kind:
        return kind if kind in ENGINES else "lxc" if kind.startswith("lxc") else "container"
    if "SNAP" in environ and _confined_by_snap(machine):
        return "snap"
    return _by_path(text)


def _confined_by_snap(machine: Machine) -> bool:
    """Return whether the process itself is confined: children of snaps inherit the variables."""
    label = machine.read("/proc/self/attr/current", 256)
    return label is None or label.startswith("snap.")


def _by_path(text: str) -> str | None:
    for line in text.splitlines():
        path = line.partition(":")[2].partition(":")[2]
        if "/docker/" in path or "/docker-" in path:
            return "docker"
        if "/libpod-" in path:
            return "podman"
        if path.startswith(("/lxc/", "/lxc.payload")):
            return "lxc"
    return None


def in_slurm(machine: Machine, cgroup: str | None = None) -> bool:
    """Return whether this process belongs to a Slurm job."""
    if machine.environ.get("SLURM_JOB_ID"):
        return True
    return cgroup_kind(cgroup_text(machine) if cgroup is None else cgroup) == "slurm"


def service_of(text: str) -> str | None:
    """Return the unit of the system's service that this process is in: "ollama.service".

    `text` is /proc/self/cgroup. A session's processes lie below user@1000.service, in scopes.
    """
    for line in text.splitlines():
        name = line.rpartition("/")[2]
        if name.endswith(".service") and "/system.slice/" in line:
            return name
    return None


_KINDS = (
    ("kubepods", "kubernetes"),
    # slurmstepd.scope/job_N with version 2, /slurm/uid_N/job_N with version 1.
    ("slurmstepd.scope/", "slurm"),
    ("/slurm/uid_", "slurm"),
    ("/slurm_", "slurm"),
    ("/docker/", "docker"),
    ("/docker-", "docker"),
    ("/libpod-", "podman"),
    ("/lxc/", "lxc"),
    ("/lxc.payload", "lxc"),
    ("/user.slice", "user"),
    ("/system.slice", "system"),
    ("/machine.slice", "machine"),
    ("/init.scope", "system"),
)


def cgroup_kind(text: str) -> str | None:
    """Return what the path of the process's cgroup shows: who made the group.

    kubernetes, slurm, docker, podman, lxc, user, system, machine (systemd's slices), root, or
    "other"; None where there is no cgroup. The path itself holds ids of jobs and containers.
    """
    paths = [line.partition(":")[2].partition(":")[2] for line in text.splitlines()]
    paths = [path for path in paths if path]
    for stem, kind in _KINDS:
        if any(stem in path for path in paths):
            return kind
    if not paths:
        return None
    return "root" if all(path == "/" for path in paths) else "other"


def is_wsl(machine: Machine) -> bool:
    """Return whether the kernel is that of the Windows Subsystem for Linux."""
    release = machine.read("/proc/sys/kernel/osrelease", 256) or ""
    return "microsoft" in release.lower()
