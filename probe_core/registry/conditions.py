"""Whether a prober's preconditions hold: a skipped prober costs microseconds, starts nothing.

Preconditions are necessary, not sufficient, and fail open: what cannot be checked holds. So nobody
looks where a dead server would hang the host, nor on beyond the budget: a child starts in vain.
"""

from __future__ import annotations

from probe_core.machine import is_kernels
from probe_core.machine.budget import Budget
from probe_core.registry.locate import top_level_exists
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from probe_core.machine import Machine
    from probe_core.machine.mounts import Mounts
    from probe_core.registry.document import When

__all__ = ["PathCheck", "unmet"]

MAX_NAMES = 4096
"""Names a pattern may be compared with: `/*/*/*/*` must not walk a whole disk."""


class PathCheck:
    """Looks whether paths exist, for the preconditions of the probers of `owner`.

    `mounts` tell where that could hang; the live machine's own if None. A recorded machine has
    none: somebody named its files.
    """

    __slots__ = ("_budget", "_machine", "_mounts", "owner")

    def __init__(
        self, machine: Machine, budget: Budget, mounts: Mounts | None = None, owner: str = ""
    ) -> None:
        self._machine = machine
        self._budget = budget
        self._mounts = mounts
        self.owner = owner

    def exists(self, pattern: str) -> bool:
        """Return whether anything fits; True where that cannot be checked."""
        if self._budget.refusal(self.owner):
            return True
        since = self._budget.clock()
        try:
            return self._fits(pattern) if "*" in pattern else self._is_there(pattern)
        finally:
            self._budget.charge(self.owner, names=1, since=since)

    def _fits(self, pattern: str) -> bool:
        folders, names = ["/"], MAX_NAMES
        for part in pattern.strip("/").split("/"):
            if len(folders) > names:
                return True  # a precondition that cannot be checked holds
            names -= len(folders)
            if any(map(self._may_hang, folders)):
                return True
            folders = self._step(folders, part)
        return bool(folders)

    def _step(self, folders: list[str], part: str) -> list[str]:
        """Return what `part`, one name of a pattern, names in these folders."""
        if "*" in part:
            pairs = ((folder, self._matching(folder, part)) for folder in folders)
            return [f"{folder.rstrip('/')}/{name}" for folder, names in pairs for name in names]
        paths = (f"{folder.rstrip('/')}/{part}" for folder in folders)
        return [path for path in paths if self._is_there(path)]

    def _matching(self, folder: str, pattern: str) -> list[str]:
        from fnmatch import fnmatchcase  # loads re, for the few manifests that have a pattern

        listed = self._machine.listdir(folder)
        self._budget.charge(self.owner, names=len(listed))
        return [name for name in listed if fnmatchcase(name, pattern)]

    def _is_there(self, path: str) -> bool:
        return self._may_hang(path) or self._machine.exists(path)

    def _may_hang(self, path: str) -> bool:
        if not self._machine.live or is_kernels(path):
            return False
        if self._mounts is None:
            from probe_core.machine.mounts import Mounts  # few manifests name such paths

            self._mounts = Mounts()
        return self._mounts.may_hang(path)


def unmet(
    when: list[When],
    machine: Machine,
    pci_vendors: Collection[str] | None,
    paths: PathCheck | None = None,
) -> str | None:
    """Return why none of the alternatives in `when` holds, or None when one does.

    `paths` counts for whose probers the paths are looked at.
    """
    if paths is None:
        paths = PathCheck(machine, Budget())
    reasons = []
    for alternative in when:
        reason = _unmet(alternative, machine, pci_vendors, paths)
        if reason is None:
            return None
        reasons.append(reason)
    return "; and ".join(dict.fromkeys(reasons)) if reasons else None


def _unmet(
    when: When, machine: Machine, pci_vendors: Collection[str] | None, paths: PathCheck
) -> str | None:
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
    return _unmet_path(when, paths) or _unmet_module(when.get("any_module"))


def _listed(vendors: list[str], present: Collection[str]) -> bool:
    return any(vendor.lower().removeprefix("0x") in present for vendor in vendors)


def _unmet_path(when: When, paths: PathCheck) -> str | None:
    any_path, all_path = when.get("any_path"), when.get("all_path")
    if any_path and not any(map(paths.exists, any_path)):
        others = f" (and {len(any_path) - 3} more)" if len(any_path) > 3 else ""
        return f"no path of {', '.join(any_path[:3])}{others} exists"
    for path in all_path or ():
        if not paths.exists(path):
            return f"the path {path} does not exist"
    return None


def _unmet_module(modules: list[str] | None) -> str | None:
    if modules and not any(top_level_exists(module) for module in modules):
        return f"no module {joined(modules)} is installed"
    return None
