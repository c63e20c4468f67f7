"""What a process runs inside, read from files alone: a container, a job, a virtual machine.

/proc and /sys are the host's in a container, so that a bound driver without a device node is the
container's doing. The control groups that hold a process say how much of the machine it may use.
"""

from __future__ import annotations

from probe_core.machine import decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.machine import Machine

    Hierarchy = tuple[int, list[str]]


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

DISTROBOX = "DISTROBOX_ENTER_PATH"
"""Set by `distrobox enter`: a container that shares the host's /dev, and none of its libraries."""

VARIABLES = (
    *("container", "KUBERNETES_SERVICE_HOST", "SLURM_JOB_ID", "SNAP", DISTROBOX),
    *BATCH_SYSTEMS,
)
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
    return _by_path(text) or _by_mounts(machine)


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


MOUNTS = "/proc/self/mounts"
_KUBERNETES = ("/run/secrets/kubernetes.io/", "/var/run/secrets/kubernetes.io/")
# The sources of a root that engines mount (overlayfs, or FUSE's without root). A live system's has
# another name, and so has OpenWrt's, whose /dev is no devtmpfs either.
_LAYERED = (("overlay", "overlay"), ("fuse-overlayfs", "fuse.fuse-overlayfs"))


def _by_mounts(machine: Machine) -> str | None:
    """Return the kind of a container that only its mounts show.

    A login over ssh has none of the variables of a pod, containerd leaves no file behind, and in a
    cgroup namespace the path is "/". LXC mounts lxcfs over files of /proc (lxcfs(1)), kubelet the
    service account's token; other engines give it a root of layers and a /dev of its own.
    """
    signs = {sign for sign, _ in mount_signs(machine.read(MOUNTS, 64 << 10) or "")}
    for kind in ("kubernetes", "lxc"):
        if kind in signs:
            return kind
    return "container" if {"layers", "own /dev"} <= signs else None


def mount_signs(text: str) -> Iterator[tuple[str, str]]:
    """Yield (what it shows, the mount without its options) of mounts that a container has."""
    for line in text.splitlines():
        source, place, kind, *_ = [*line.split(), "", "", ""]
        mount = f"{source} {place} {kind}"
        if place.startswith(_KUBERNETES):
            yield "kubernetes", f"tmpfs {_KUBERNETES[0]}serviceaccount tmpfs"
        elif kind == "fuse.lxcfs" and place.startswith("/proc/"):
            yield "lxc", mount
        elif place == "/" and (source, kind) in _LAYERED:
            yield "layers", mount
        elif place == "/dev" and kind == "tmpfs":
            yield "own /dev", mount


def in_slurm(machine: Machine, cgroup: str | None = None) -> bool:
    """Return whether this process belongs to a Slurm job."""
    if machine.environ.get("SLURM_JOB_ID"):
        return True
    return cgroup_kind(cgroup_text(machine) if cgroup is None else cgroup) == "slurm"


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
    paths = {line.partition(":")[2].partition(":")[2] for line in text.splitlines()} - {""}
    if not paths:
        return None
    every = "\n".join(paths)
    for stem, kind in _KINDS:
        if stem in every:
            return kind
    return "root" if paths == {"/"} else "other"


def is_wsl(machine: Machine) -> bool:
    """Return whether the kernel is that of the Windows Subsystem for Linux."""
    release = machine.read("/proc/sys/kernel/osrelease", 256) or ""
    return "microsoft" in release.lower()


# A virtual machine, whose devices are the hypervisor's to give.

# Beginning of a DMI vendor's or product's name to the hypervisor, as systemd-detect-virt reads it.
_BY_DMI = (
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "virtualbox"),
    ("VirtualBox", "virtualbox"),
    ("Oracle Corporation VirtualBox", "virtualbox"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "hyper-v"),
    ("Apple Virtualization", "apple"),
)
_DMI = "/sys/class/dmi/id"
_DMI_FILES = ("product_name", "sys_vendor", "board_vendor", "bios_vendor")


def hypervisor(machine: Machine) -> str | None:
    """Return the kind of virtual machine; "vm" where only its being one is known."""
    if is_wsl(machine):
        return "wsl"
    if machine.read("/sys/hypervisor/type", 32) == "xen":
        return "xen"
    texts = [text for name in _DMI_FILES if (text := machine.read(f"{_DMI}/{name}", 128))]
    for start, kind in _BY_DMI:
        if any(text.startswith(start) for text in texts):
            return None if kind == "amazon" and _is_metal(texts) else kind
    if "Microsoft Corporation" in texts and "Virtual Machine" in texts:
        return "hyper-v"
    return "vm" if _has_hypervisor_flag(machine) else None


def _is_metal(texts: list[str]) -> bool:
    """Return whether an instance is the whole machine: its type is the product ("g4dn.metal")."""
    return any(text.endswith(".metal") or ".metal-" in text for text in texts)


def _has_hypervisor_flag(machine: Machine) -> bool:
    """Look at the first processor alone: the file of a large server is long."""
    head = machine.read("/proc/cpuinfo", 4096) or ""
    flags = next((line for line in head.splitlines() if line.startswith("flags")), "")
    return "hypervisor" in flags.split()


# The control groups that this process is in: where a limit of CPUs or memory is written.
#
# Most systems mount them below /sys/fs/cgroup. Older batch systems mounted each controller where
# they liked, and cpusets as a file system of their own; their mounts are read only there.

ROOT = "/sys/fs/cgroup"
MAX_GROUPS = 32
"""Groups above one another that are looked at. A judgement: systemd and Kubernetes nest eight."""


_HUGE = 1 << 60
"""Control groups write "no limit" as "max" (v2) or as a number beyond any machine (v1)."""

# The files of a limit and of its use, and the reclaimable part of the use in memory.stat.
_V2 = ("memory.max", "memory.current", "inactive_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def hierarchies(machine: Machine, controller: str) -> Iterator[Hierarchy]:
    """Yield the trees of groups that may limit this process through `controller`.

    That is memory, cpu or cpuset. A tree is its version and its folders, from this process's own
    group upward. The version is 2, 1, or 0 for the file system of cpusets, whose files have no
    prefix.
    """
    groups = memberships(machine)
    for _, controllers, path in groups:
        if not controllers:
            yield 2, upward(ROOT, path)
        elif controller in controllers:
            # systemd makes a link for each controller: cpu -> cpu,cpuacct.
            yield 1, upward(f"{ROOT}/{controller}", path)
    if controller == "cpuset" and not (groups and machine.exists(ROOT)):
        yield from _mounted(machine)


def memberships(machine: Machine) -> list[tuple[str, list[str], str]]:
    """Return number, controllers and group of each line of /proc/self/cgroup (cgroups(7)).

    The one of version 2 has no controllers; on a hybrid system it has none of their files.
    """
    groups = []
    for line in cgroup_text(machine).splitlines():
        number, _, hierarchy = line.partition(":")
        controllers, _, path = hierarchy.partition(":")
        if controllers or number == "0":
            groups.append((number, controllers.split(",") if controllers else [], path))
    return groups


def cpu_quota(machine: Machine) -> tuple[float | None, str]:
    """Return the smallest share of CPU time, in CPUs, from the group upward, and its file."""
    least, place = None, ""
    for version, folders in hierarchies(machine, "cpu"):
        for folder in folders:
            path, quota = _quota_of(machine, folder, version)
            if quota is not None and (least is None or quota < least):
                least, place = quota, path
    return least, place


def _quota_of(machine: Machine, folder: str, version: int) -> tuple[str, float | None]:
    if version == 2:
        path = f"{folder}/cpu.max"
        quota, _, period = (machine.read(path, 64) or "").partition(" ")
    else:
        path = f"{folder}/cpu.cfs_quota_us"
        quota = machine.read(path, 32) or ""  # -1 without a limit
        period = machine.read(f"{folder}/cpu.cfs_period_us", 32) or "" if quota.isdecimal() else ""
    used, whole = decimal(quota), decimal(period.strip())
    return path, used / whole if used and whole else None


def memory_limits(machine: Machine) -> tuple[int | None, int | None, str]:
    """Return (smallest limit, least room, where that limit is written), from the group upward."""
    limits, rooms = [], []
    for version, folders in hierarchies(machine, "memory"):
        names = _V2 if version == 2 else _V1
        for folder in folders:
            limit = machine.read_int(f"{folder}/{names[0]}")
            if limit is not None and 0 <= limit < _HUGE:
                limits.append((limit, f"{folder}/{names[0]}"))
                rooms.append(max(0, limit - _used(machine, folder, names)))
    limit, place = min(limits, default=(None, ""))
    return limit, min(rooms, default=None), place


def _used(machine: Machine, folder: str, names: tuple[str, str, str]) -> int:
    """Return what a group holds and cannot give back at once, as kubelet's working set is.

    Its use counts the page cache too: a process that has read a model's weights would seem full.
    """
    used = machine.read_int(f"{folder}/{names[1]}") or 0
    for line in (machine.read(f"{folder}/memory.stat", 16 << 10) or "").splitlines():
        name, _, number = line.partition(" ")
        if name == names[2]:
            used -= decimal(number) or 0
    return max(0, used)


def upward(root: str, path: str) -> list[str]:
    """Return the group's folder and its ancestors; in a container the path may not exist there."""
    folders = [root]
    for part in path.split("/"):
        if part not in ("", ".", "..") and len(folders) <= MAX_GROUPS:
            folders.append(f"{folders[-1]}/{part}")
    return folders[::-1]


def _mounted(machine: Machine) -> Iterator[Hierarchy]:
    """Yield the trees of cpusets where they are mounted elsewhere than below /sys/fs/cgroup."""
    path = machine.read("/proc/self/cpuset", 4096)
    if not path:
        return
    for line in (machine.read("/proc/mounts", 256 << 10) or "").splitlines():
        _, place, kind, options, *_ = [*line.split(), "", "", "", ""]
        words = options.split(",")
        if kind == "cgroup2":
            yield 2, upward(place, path)
        elif kind == "cpuset" or (kind == "cgroup" and "cpuset" in words):
            version = 0 if kind == "cpuset" or "noprefix" in words else 1
            yield version, upward(place, path)
