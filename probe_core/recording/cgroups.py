"""The control groups that limit this process, under names that tell nothing of it.

A group's path holds users, sessions, containers and jobs; a report needs the limits alone.
"""

from __future__ import annotations

from probe_core.machine.cgroups import MAX_GROUPS, ROOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_core.machine import Machine

__all__ = ["cgroups"]

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
    for line in (machine.read("/proc/self/cgroup", 16 << 10) or "").splitlines():
        number, _, remainder = line.partition(":")
        controllers, _, path = remainder.partition(":")
        # Hierarchy 0 is that of version 2; on a hybrid system it has no controllers' files.
        if number == "0" and not controllers:
            yield number, "", path
        for controller in controllers_read:
            if controller in controllers.split(","):
                yield number, controller, path


def _read(
    machine: Machine, folder: str, new: str, names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    for name in names:
        text = machine.read(f"{folder}/{name}")
        if text is not None:
            yield f"{new}/{name}", text + "\n"
