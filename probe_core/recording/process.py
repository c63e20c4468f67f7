"""What the recording process may open and where it runs: user, groups, container, device nodes.

A recording's nodes are empty files that anybody may open, so that what access(2) said of the real
ones is kept apart from them.
"""

from __future__ import annotations

from probe_core.machine.access import MISSING, UNKNOWN, access
from probe_core.machine.surroundings import ENGINES
from probe_core.recording.limits import MAX_ACCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.machine import Machine
    from probe_core.recording.declared import Declared

__all__ = ["STATUS_PATH", "first_user", "node_access", "process_status", "surroundings"]

STATUS_PATH = "/proc/self/status"

_SYSTEM_GROUPS = range(1000)
"""Groups that distributions make, such as render and video; a person's own begin at 1000
(SYS_GID_MAX of login.defs)."""

_OTHER = 1000
"""Stands for every number of a person."""

_OVERFLOW = 65534  # a group outside the user namespace's map: that it is so matters, see user_ns(7)


_MOUNTS = "/proc/self/mounts"
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
    if lines := [line for line in (machine.read(_MOUNTS) or "").splitlines() if _is_kept(line)]:
        files[_MOUNTS] = "".join(f"{line}\n" for line in lines)
    return files


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


def first_user(status: str) -> str | None:
    """Return the user's number in what `process_status` made."""
    fields = status.partition("Uid:")[2].partition("\n")[0].split()
    return fields[0] if fields else None


def _disguised(number: str) -> str:
    value = int(number) if number.isdecimal() and len(number) < 11 else _OTHER
    return str(value if value in _SYSTEM_GROUPS or value == _OVERFLOW else _OTHER)
