"""What the recording process may open and where it runs: user, groups, container, device nodes.

A recording's nodes are empty files that anybody may open, so that what access(2) said of the real
ones is kept apart from them.
"""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.machine.access import MISSING, UNKNOWN, access
from probe_core.machine.surroundings import (
    ENGINES,
    MAX_GROUPS,
    MOUNTS,
    ROOT,
    memberships,
    mount_signs,
)
from probe_core.readiness.distributions import OSTREE
from probe_core.readiness.scene import ADDRESS_SPACE, LIMITS
from probe_core.recording.paths import MAX_ACCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from probe_core.machine import Machine
    from probe_core.readiness import Scene
    from probe_core.recording.declared import Declared


STATUS_PATH = "/proc/self/status"

_SYSTEM_GROUPS = range(1000)
"""Groups that distributions make, such as render and video; a person's own begin at 1000
(SYS_GID_MAX of login.defs)."""

_OTHER = 1000
"""Stands for every number of a person."""

_OVERFLOW = 65534  # a group outside the user namespace's map: that it is so matters, see user_ns(7)


_UID_MAP = "/proc/self/uid_map"

_WHOLE = ["0", "0", "4294967295"]


def surroundings(machine: Machine) -> dict[str, str]:
    """Return the files that name a container's engine and show a user namespace, disguised."""
    files = {}
    if machine.exists("/run/systemd/container"):
        files["/run/systemd/container"] = _word(machine.read("/run/systemd/container", 64))
    if machine.exists(_UID_MAP):
        first = (machine.read(_UID_MAP, 4096) or "").partition("\n")[0].split()
        files[_UID_MAP] = f"{' '.join(_WHOLE)}\n" if first == _WHOLE else f"0 {_OTHER} 1\n"
    if lines := _mounts(machine.read(MOUNTS) or ""):
        files[MOUNTS] = "".join(f"{line}\n" for line in lines)
    return files


def _mounts(text: str) -> list[str]:
    """Return the mounts to keep; of those that show an engine not the options, which have ids."""
    signs = dict.fromkeys(f"{mount} rw 0 0" for sign, mount in mount_signs(text))
    kept = [line for line in text.splitlines() if _is_kept(line)]
    return [*(line for line in signs if not _is_kept(line)), *kept]


def _is_kept(line: str) -> bool:
    """Return whether a mount is that of /dev, which a sandbox replaces, or of shared memory."""
    return line.split(" ")[1:2] in (["/dev"], ["/dev/shm"])


def _word(text: str | None) -> str:
    """Return the name of a container's engine; another word may be somebody's."""
    if text is None or text in ENGINES:
        return text or "other"
    return "lxc" if text.startswith("lxc") else "other"


def node_access(
    machine: Machine, nodes: Iterable[str], declarations: Sequence[Declared]
) -> dict[str, str]:
    """Return how opening each declared node would end: "ok", "missing" or an error's name.

    A node that a pattern with wildcards might name is missing without a path. What is unknown of a
    recorded machine stays so.
    """
    plain = [n for declared in declarations for n in declared.nodes if not ("*" in n or "#" in n)]
    paths = list(dict.fromkeys((*nodes, *plain, *_of_classes(machine))))[:MAX_ACCESS]
    answers = {path: access(machine, path) for path in paths}
    shown = machine.live or machine.exists("/dev")
    return {
        path: word
        for path, word in answers.items()
        if word != UNKNOWN and (word != MISSING or shown or path in machine.access)
    }


def _of_classes(machine: Machine) -> list[str]:
    """Return the nodes that the kernel has devices for, whether or not they are in /dev."""
    return [
        f"/dev/{folder}/{name}"
        for kind, folder, stem in (("drm", "dri", "renderD"), ("accel", "accel", "accel"))
        for name in machine.listdir(f"/sys/class/{kind}")
        if name.removeprefix(stem).isdecimal()
    ]


def process_status(machine: Machine) -> str | None:
    """Return /proc/self/status with the lines about user and groups alone, without a person's ids.

    0 stays 0, groups of the system stay: they say whether the process may open a node.
    """
    text = machine.read(STATUS_PATH, 16 << 10) if machine.exists(STATUS_PATH) else None
    if text is None:
        return None
    lines = []
    for line in text.splitlines():
        name, _, numbers = line.partition(":")
        if name in ("Uid", "Gid", "Groups"):
            lines.append(f"{name}:\t{' '.join(map(_disguised, numbers.split()))}\n")
    return "".join(lines) or None


def address_space(machine: Machine) -> str | None:
    """Return the line of /proc/self/limits that tells how much address space a process may have."""
    lines = (machine.read(LIMITS, 4 << 10) or "").splitlines(keepends=True)
    return next((line for line in lines if line.startswith(ADDRESS_SPACE)), None)


def first_user(status: str) -> str | None:
    """Return the user's number in what `process_status` made."""
    fields = status.partition("Uid:")[2].partition("\n")[0].split()
    return fields[0] if fields else None


def _disguised(number: str) -> str:
    value = int(number) if number.isdecimal() and len(number) < 11 else _OTHER
    return str(value if value in _SYSTEM_GROUPS or value == _OVERFLOW else _OTHER)


# What a recording keeps of the user, the distribution and the variables that drivers obey.

_GROUPS = ("render", "video")
"""Groups to which distributions give the nodes of GPUs (udev, 50-udev-default.rules)."""

_USER = "user"
_LABEL = "/proc/self/attr/current"
_RELEASES = ("/etc/os-release", "/usr/lib/os-release")
_RELEASE_KEYS = ("ID", "ID_LIKE", "VERSION_ID", "VARIANT_ID")
_PIPES, _USUAL_PIPES = "CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"
_NUMBERS = ("CUDA_VERSION", "HSA_OVERRIDE_GFX_VERSION")
_SIGNS = ("SSH_CONNECTION",)
"""Variables of which it matters that they are set."""


def account_files(machine: Machine, scene: Scene, uid: str | None) -> dict[str, bytes]:
    """Return path to content; `uid` is the number that the recording has for the user."""
    return {
        **dict(_accounts(scene, uid)),
        **dict(_label(machine)),
        **dict(_release(machine)),
        **dict(_mps(machine)),
        **dict(_helper(machine)),
    }


def _accounts(scene: Scene, uid: str | None) -> Iterator[tuple[str, bytes]]:
    """Yield who is in the groups of GPUs' nodes: this user, or nobody."""
    listed = scene.process.listed_groups()
    if uid is None or not listed:
        return
    yield "/etc/passwd", f"{_USER}:x:{uid}:{uid}::/:\n".encode()
    lines = [
        f"{name}:x:{number}:{_USER if is_member else ''}\n"
        for name, (number, is_member) in listed.items()
        if name in _GROUPS
    ]
    yield "/etc/group", "".join(lines).encode()


def _label(machine: Machine) -> Iterator[tuple[str, bytes]]:
    """Yield the process's confinement, without the names in it."""
    label = machine.read(_LABEL, 256) or ""
    if ":container_t:" in label:
        yield _LABEL, b"system_u:system_r:container_t:s0\n"
    elif label:
        yield _LABEL, b"snap.app\n" if label.startswith("snap.") else b"unconfined\n"


def _release(machine: Machine) -> Iterator[tuple[str, bytes]]:
    path = next(filter(machine.exists, _RELEASES), _RELEASES[0])
    text = machine.read(path, 16 << 10)
    if text is not None:
        lines = [f"{line}\n" for line in text.splitlines() if line.split("=")[0] in _RELEASE_KEYS]
        yield path, "".join(lines).encode("utf-8", "replace")
    if machine.exists(OSTREE):
        yield OSTREE, b""


def _mps(machine: Machine) -> Iterator[tuple[str, bytes]]:
    """Yield the files of MPS's daemon, in the usual folder, and whether it lives."""
    folder = machine.environ.get(_PIPES, "")
    if not folder.startswith("/") or not machine.exists(folder):
        return
    yield f"{_USUAL_PIPES}/log", b""
    if machine.exists("/proc/self"):  # only then does a missing process say that it is gone
        yield "/proc/self/status", b""
    if machine.exists(f"{folder}/control"):
        yield f"{_USUAL_PIPES}/control", b""
    daemon = decimal(machine.read(f"{folder}/nvidia-cuda-mps-control.pid", 32) or "")
    if daemon is not None:
        yield f"{_USUAL_PIPES}/nvidia-cuda-mps-control.pid", f"{daemon}\n".encode()
        if machine.exists(f"/proc/{daemon}"):
            yield f"/proc/{daemon}/comm", b"nvidia-cuda-mps\n"


def _helper(machine: Machine) -> Iterator[tuple[str, bytes]]:
    """Yield the setuid program that creates NVIDIA's nodes when they are first needed."""
    if machine.exists("/usr/bin/nvidia-modprobe"):
        yield "/usr/bin/nvidia-modprobe", b""


def account_variables(machine: Machine) -> dict[str, str]:
    """Return the variables, of those that tell no identity, by which readiness judges."""
    environ = machine.environ
    kept = {name: "1" for name in _SIGNS if name in environ}
    # Whatever is no number is wrong, which is all that is judged.
    kept |= {name: _plain(environ[name]) for name in _NUMBERS if name in environ}
    if environ.get(_PIPES, "").startswith("/"):
        kept[_PIPES] = _USUAL_PIPES
    return kept


def _plain(value: str) -> str:
    """Return the value, "?" for what is no version; an empty one is another fault, or none."""
    is_version = value.replace(".", "").isalnum() and len(value) < 24
    return value if is_version or not value else "?"


# The control groups that limit this process, under names that tell nothing of it.
#
# A group's path holds users, sessions, containers and jobs; a report needs the limits alone.

# Names of groups that are the same on all machines, and beginnings of others, by which
# `machine.surroundings` tells containers, jobs and sessions apart.
_PUBLIC = (
    "docker",
    "init.scope",
    "kubepods",
    "kubepods.slice",
    "lxc",
    "machine.slice",
    "ollama.service",
    "slurm",
    "slurmstepd.scope",
    "system.slice",
    "user.slice",
)
_SERVICE = ".service"
"""That a service of the system runs this says where its devices are given to it."""

_STEMS = ("docker-", "libpod-", "lxc.payload", "uid_", "job_")


def cgroups(machine: Machine, names: Sequence[str]) -> dict[str, str]:
    """Return the files `names` of each group of this process, and the /proc/self/cgroup to them.

    A file's name begins with its controller: with version 1 of control groups it lies in that
    controller's own hierarchy (``memory.limit_in_bytes``), with version 2 there is but one.
    """
    lines: list[str] = []
    files: dict[str, str] = {}
    for number, controller, path in _memberships(machine, names):
        groups = [part for part in path.split("/") if part not in ("", ".", "..")][:MAX_GROUPS]
        renamed = [_renamed(group, depth) for depth, group in enumerate(groups, 1)]
        lines.append(f"{number}:{controller}:/{'/'.join(renamed)}\n")
        root = f"{ROOT}/{controller}".rstrip("/")
        for depth in range(len(groups) + 1):
            folder = "/".join([root, *groups[:depth]])
            new = "/".join([root, *renamed[:depth]])
            files.update(_read(machine, folder, new, names))
    return {"/proc/self/cgroup": "".join(lines), **files} if lines else {}


def _renamed(group: str, depth: int) -> str:
    """Return a name that says who made a group, and nothing else of it."""
    if group in _PUBLIC:
        return group
    stem = next((stem for stem in _STEMS if group.startswith(stem)), "")
    return f"{stem}group{depth}{_SERVICE if group.endswith(_SERVICE) else ''}"


def _memberships(machine: Machine, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the hierarchies of /proc/self/cgroup that have such files: number, controller, path."""
    controllers_read = dict.fromkeys(name.partition(".")[0] for name in names)
    for number, controllers, path in memberships(machine):
        if not controllers:
            yield number, "", path
        for controller in controllers_read:
            if controller in controllers:
                yield number, controller, path


def _read(
    machine: Machine, folder: str, new: str, names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    for name in names:
        text = machine.read(f"{folder}/{name}")
        if text is not None:
            yield f"{new}/{name}", text + "\n"
