"""Whether a prober's preconditions hold: a skipped prober costs microseconds, starts nothing.

Preconditions are necessary, not sufficient, and fail open: what cannot be checked holds.
"""

from __future__ import annotations

from probe_core.registry.locate import top_level_exists
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from probe_core.machine import Machine
    from probe_core.registry.document import When

__all__ = ["unmet"]

MAX_NAMES = 4096
"""Names a pattern may be compared with: `/*/*/*/*` must not walk a whole disk."""


def unmet(when: list[When], machine: Machine, pci_vendors: Collection[str] | None) -> str | None:
    """Return why none of the alternatives in `when` holds, or None when one does."""
    reasons = []
    for alternative in when:
        reason = _unmet(alternative, machine, pci_vendors)
        if reason is None:
            return None
        reasons.append(reason)
    return "; and ".join(dict.fromkeys(reasons)) if reasons else None


def _unmet(when: When, machine: Machine, pci_vendors: Collection[str] | None) -> str | None:
    for needed, own in ((when.get("os"), machine.os), (when.get("machine"), machine.arch)):
        if needed and own not in needed:
            return f"needs {joined(needed)}, this is {own}"
    vendors = when.get("pci_vendor")
    # None: the bus was not read, so the condition cannot be checked.
    if vendors and pci_vendors is not None and not _listed(vendors, pci_vendors):
        return f"no PCI device of vendor {joined(vendors)}"
    variables = when.get("any_environ")
    if variables and not any(machine.environ.get(name) for name in variables):
        return f"no environment variable {joined(variables)} is set"
    return _unmet_path(when, machine) or _unmet_module(when.get("any_module"))


def _listed(vendors: list[str], present: Collection[str]) -> bool:
    return any(vendor.lower().removeprefix("0x") in present for vendor in vendors)


def _unmet_path(when: When, machine: Machine) -> str | None:
    any_path, all_path = when.get("any_path"), when.get("all_path")
    if any_path and not any(_exists(machine, path) for path in any_path):
        others = f" (and {len(any_path) - 3} more)" if len(any_path) > 3 else ""
        return f"no path of {', '.join(any_path[:3])}{others} exists"
    for path in all_path or ():
        if not _exists(machine, path):
            return f"the path {path} does not exist"
    return None


def _unmet_module(modules: list[str] | None) -> str | None:
    if modules and not any(top_level_exists(module) for module in modules):
        return f"no module {joined(modules)} is installed"
    return None


def _exists(machine: Machine, path: str) -> bool:
    """Return whether anything fits the pattern; True for one that has too much to look through."""
    if "*" not in path:
        return machine.exists(path)
    folders, names = ["/"], MAX_NAMES
    for part in path.strip("/").split("/"):
        if len(folders) > names:
            return True  # a precondition that cannot be checked holds
        names -= len(folders)
        folders = _step(machine, folders, part)
    return bool(folders)


def _step(machine: Machine, folders: list[str], part: str) -> list[str]:
    """Return what `part`, one name of a pattern, names in these folders."""
    if "*" in part:
        pairs = ((folder, _matching(machine, folder, part)) for folder in folders)
        return [f"{folder.rstrip('/')}/{name}" for folder, names in pairs for name in names]
    paths = (f"{folder.rstrip('/')}/{part}" for folder in folders)
    return [path for path in paths if machine.exists(path)]


def _matching(machine: Machine, folder: str, pattern: str) -> list[str]:
    from fnmatch import fnmatchcase  # loads re, for the few manifests that have a pattern

    return [name for name in machine.listdir(folder) if fnmatchcase(name, pattern)]
