"""The control groups that limit this process, under names that tell nothing of it.

A group's path holds users, sessions, containers and jobs; a report needs the limits alone.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.machine import Machine

__all__ = ["cgroups"]

_V2 = ("/sys/fs/cgroup", "memory.max memory.current memory.stat".split())
_V1 = (
    "/sys/fs/cgroup/memory",
    "memory.limit_in_bytes memory.usage_in_bytes memory.stat".split(),
)
_MAX_GROUPS = 32


def cgroups(machine: Machine) -> dict[str, str]:
    """Return the files of the memory limits, and the /proc/self/cgroup that leads to them."""
    lines: list[str] = []
    found: dict[str, str] = {}
    for line in (machine.read("/proc/self/cgroup", 16 << 10) or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            root, names = _V2
        elif "memory" in controllers.split(","):
            root, names = _V1
            controllers = "memory"
        else:
            continue
        groups = [part for part in path.split("/") if part not in ("", ".", "..")][:_MAX_GROUPS]
        renamed = [f"group{depth}" for depth in range(1, len(groups) + 1)]
        lines.append(f"{number}:{controllers}:/{'/'.join(renamed)}\n")
        for depth in range(len(groups) + 1):
            folder, new = (_below(root, names[:depth]) for names in (groups, renamed))
            found.update(_limits(machine, folder, new, names))
    return {"/proc/self/cgroup": "".join(lines), **found} if lines else {}


def _below(root: str, groups: list[str]) -> str:
    return "/".join([root, *groups])


def _limits(machine: Machine, folder: str, new: str, names: list[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        text = machine.read(f"{folder}/{name}")
        if text is not None:
            yield f"{new}/{name}", text + "\n"
