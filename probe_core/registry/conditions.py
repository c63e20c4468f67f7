"""Whether a prober's preconditions hold: a skipped prober costs microseconds, starts nothing.

Preconditions are necessary, not sufficient, and fail open: what cannot be checked holds.
"""

from __future__ import annotations

from probe_core.registry.locate import top_level_exists
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from probe_core.machine import Machine

__all__ = ["unmet"]

MAX_NAMES = 4096
"""Names a pattern may be compared with: `/*/*/*/*` must not walk a whole disk."""


def unmet(
    when: list[dict[str, Any]], machine: Machine, pci_vendors: Collection[str] | None
) -> str | None:
    """Return why none of the alternatives in `when` holds, or None when one does."""
    reasons = []
    for alternative in when:
        reason = _unmet(alternative, machine, pci_vendors)
        if reason is None:
            return None
        reasons.append(reason)
    return "; and ".join(dict.fromkeys(reasons)) if reasons else None


def _unmet(
    wanted: dict[str, Any], machine: Machine, pci_vendors: Collection[str] | None
) -> str | None:
    systems, arches = wanted.get("os"), wanted.get("machine")
    if systems and machine.os not in systems:
        return f"needs {joined(systems)}, this is {machine.os}"
    if arches and machine.arch not in arches:
        return f"needs {joined(arches)}, this is {machine.arch}"
    vendors = wanted.get("pci_vendor")
    # None: the bus was not read, so the condition cannot be checked.
    if vendors and pci_vendors is not None and not _listed(vendors, pci_vendors):
        return f"no PCI device of vendor {joined(vendors)}"
    variables = wanted.get("any_environ")
    if variables and not any(machine.environ.get(name) for name in variables):
        return f"no environment variable {joined(variables)} is set"
    return _paths_unmet(wanted, machine) or _modules_unmet(wanted.get("any_module"))


def _listed(vendors: list[str], present: Collection[str]) -> bool:
    return any(vendor.lower().removeprefix("0x") in present for vendor in vendors)


def _paths_unmet(wanted: dict[str, Any], machine: Machine) -> str | None:
    any_path, all_path = wanted.get("any_path"), wanted.get("all_path")
    if any_path and not any(_there(machine, path) for path in any_path):
        more = f" (and {len(any_path) - 3} more)" if len(any_path) > 3 else ""
        return f"no path of {', '.join(any_path[:3])}{more} exists"
    for path in all_path or ():
        if not _there(machine, path):
            return f"the path {path} does not exist"
    return None


def _modules_unmet(modules: list[str] | None) -> str | None:
    if modules and not any(top_level_exists(module) for module in modules):
        return f"no module {joined(modules)} is installed"
    return None


def _there(machine: Machine, path: str) -> bool:
    if "*" not in path:
        return machine.exists(path)
    folders, names = ["/"], MAX_NAMES
    for part in path.strip("/").split("/"):
        if len(folders) > names:
            return True  # too much to look through, so it cannot be checked
        names -= len(folders)
        folders = [
            f"{folder.rstrip('/')}/{name}"
            for folder in folders
            for name in (_matching(machine, folder, part) if "*" in part else [part])
        ]
        if "*" not in part:
            folders = [folder for folder in folders if machine.exists(folder)]
    return bool(folders)


def _matching(machine: Machine, folder: str, pattern: str) -> list[str]:
    from fnmatch import fnmatchcase  # loads re, for the few manifests that have a pattern

    return [name for name in machine.listdir(folder) if fnmatchcase(name, pattern)]
