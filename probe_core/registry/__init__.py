"""Which probers are installed, and which of them run: metadata only, no plugin is imported.

Here are the entry points of what is installed, and where a module lies: `importlib.util.find_spec`
runs ``a/__init__.py`` to find ``a.b``, a walk over the path does not.
"""

from __future__ import annotations

import os
import sys
from time import thread_time

from probe_core.fastpath import extension_suffixes, plain_finders
from probe_core.machine import read_regular, text_of
from probe_core.machine.trust import applies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from importlib.machinery import ModuleSpec
    from typing import TypeAlias

    from probe_core.machine.trust import Trust

    Line: TypeAlias = tuple[str, str, str]
    """Group, name and target."""
    _Folder: TypeAlias = tuple[str, list[str], str]
    """A folder of the path, the names of metadata in it, and these normalised, after a "/" each."""


_SUFFIXES = (".py", ".pyc", *extension_suffixes())


class Place:
    """A module's own file (None for a namespace package) and the folder its data lies in."""

    def __init__(self, file: str | None, folder: str, is_package: bool) -> None:
        self.file = file
        self.folder = folder
        self.is_package = is_package

    def code(self, module: str, trust: Trust) -> list[str]:
        """Return what root must look at: all that an import of `module` may run of its own.

        That is the folder of its top-level package, or of a single file the file itself, others of
        its name that an import prefers, and its bytecode, as `trust` has listed it.
        """
        parts = module.split(".")
        above = len(parts) - (1 if self.is_package else 2)
        if above >= 0:
            folder = self.folder
            for _ in range(above):
                folder = os.path.dirname(folder)
            return [folder, self.file or self.folder]
        # A folder of that name is no package yet, and its owner can make it one at any moment.
        variants = [parts[0] + suffix for suffix in ("", *_SUFFIXES)]
        present = trust.present(self.folder, variants)
        own = [] if self.file is None or self.file in present else [self.file]
        return own + present + trust.bytecode(self.folder, parts[0])

    def root(self, module: str) -> str:
        """Return the folder from which the top level of `module` is imported."""
        folder = self.folder
        for _ in range(module.count(".") + (1 if self.is_package else 0)):
            folder = os.path.dirname(folder)
        return folder

    def files(self, module: str, trust: Trust) -> list[str]:
        """Return what decides whether `module` may be used: all its code, where root is asked."""
        return self.code(module, trust) if applies() else [self.file or self.folder]

    def manifest(self, module: str, kind: str) -> str | None:
        """Return the path of the manifest of `module`; None without one."""
        name = module.rpartition(".")[2]
        candidates = [f"{self.folder}/{name}.{kind}.json", f"{self.folder}/{kind}.json"]
        if not self.is_package and "." not in module:
            candidates.pop()  # a single-file module shares its folder with all of site-packages
        for path in candidates:  # no generator: Python drops an interrupt while it ends one
            if os.path.lexists(path):
                return path
        return None


def is_module_name(name: str) -> bool:
    """Return whether `name` is a dotted Python name of reasonable length."""
    return len(name) <= 200 and all(part.isidentifier() for part in name.split("."))


def locate(
    module: str, first: str | None = None, paths: Iterable[str] | None = None
) -> Place | None:
    """Return where `module` lies, looking in `first` and then along the path; None if nowhere."""
    roots = [*([first] if first else []), *(sys.path if paths is None else paths)]
    for root in dict.fromkeys(root for root in roots if isinstance(root, str)):
        place = _below(root or os.curdir, module.split("."))
        if place:
            return place
    return None


def find_module(module: str, first: str | None = None) -> tuple[Place | None, bool]:
    """Return where `module` lies, on the path or else by hooks, as `locate_by_hooks` does."""
    place = locate(module, first)
    return (place, False) if place else locate_by_hooks(module)


def _below(folder: str, parts: list[str]) -> Place | None:
    *packages, last = parts
    # One look instead of seven: an editable checkout has a path entry for each distribution.
    if packages and not os.path.isdir(f"{folder}/{packages[0]}"):
        return None
    for package in packages:
        folder = f"{folder}/{package}"
    inner = f"{folder}/{last}"
    init = f"{inner}/__init__.py"
    if os.path.isfile(init):
        return Place(init, inner, True)
    for suffix in _SUFFIXES:
        if os.path.isfile(inner + suffix):
            return Place(inner + suffix, folder, False)
    return Place(None, inner, True) if os.path.isdir(inner) and packages else None


def locate_by_hooks(module: str) -> tuple[Place | None, bool]:
    """Ask the import hooks of this process (zip archives, editable installs, frozen programs).

    Only for the top level, which runs hooks but imports nothing. Returns the place, and whether
    the hook is one that a plain interpreter lacks before its ``site`` module ran.
    """
    plain = plain_finders()
    top, _, inner = module.partition(".")
    for finder in list(sys.meta_path):
        try:
            spec = finder.find_spec(top, None)
            if spec is not None:
                place = _place_of(spec, inner.split(".") if inner else [])
                return place, finder not in plain
        except Exception:  # another package's hook; the import in the child reports what it breaks
            continue
    return None, False


def _place_of(spec: ModuleSpec, inner: list[str]) -> Place | None:
    folders = list(spec.submodule_search_locations or ())
    if inner:
        return next(filter(None, (_below(folder, inner) for folder in folders)), None)
    if folders:
        return Place(spec.origin, folders[0], True)
    if not spec.origin or not spec.has_location:
        return None
    return Place(spec.origin, os.path.dirname(spec.origin), False)


def top_level_exists(module: str) -> bool:
    """Return whether a top-level module can be imported; used by ``any_module``."""
    name = module.partition(".")[0]
    if not name.isidentifier():
        return False
    if name in sys.builtin_module_names or locate(name) is not None:
        return True
    # A namespace package is only a folder.
    folders = (path for path in sys.path if isinstance(path, str))
    if any(os.path.isdir(f"{folder or os.curdir}/{name}") for folder in folders):
        return True
    return locate_by_hooks(name)[0] is not None


# Find entry points by reading files: importlib.metadata is slow, and one bad file stops it.
#
# `importlib.metadata.entry_points()` takes 40 ms and raises for everyone when one unrelated
# distribution on the path is malformed or not UTF-8. A walk over the folders takes about a
# millisecond, and a broken distribution costs only itself.

GROUP = "probe_core.probers.v1"
GROUP_STEM = "probe_core.probers.v"
CHIPS = "probe_core.chipdb.v"
"""What the group of vendors' chip packages begins with, whatever its version: chipdb reads those of
its own by itself, and names the others."""
FILE = "entry_points.txt"
_ENDINGS = (".dist-info", ".egg-info")

FILE_LIMIT = 1 << 20
"""Bytes of one file; setuptools' own, the longest of a plain environment, has 2,449."""

MAX_ENTRIES = 64
"""Entry points of one distribution at most: each prober is a process. Ours declare one or two."""


class EntryPoint:
    """One line of one distribution's entry points.

    `site` is the folder of the path that holds the metadata folder `metadata`.
    """

    def __init__(
        self, group: str, name: str, target: str, metadata: str, distribution: str, version: str
    ) -> None:
        self.group = group
        self.name = name
        self.target = target
        self.metadata = metadata
        self.site = os.path.dirname(metadata)
        self.distribution = distribution
        self.version = version


class Problem:
    """Why the entry points of `distribution` were left out; `evidence` is what was read where."""

    def __init__(self, distribution: str, reason: str, evidence: str) -> None:
        self.distribution = distribution
        self.reason = reason
        self.evidence = evidence


def scan(
    paths: Iterable[str] | None = None,
    stem: str = GROUP_STEM,
    mentioned: dict[str, bool] | None = None,
) -> tuple[list[EntryPoint], list[Problem]]:
    """Return the entry points in groups that start with `stem`, in the path's order.

    Any group stem will do: ``probe_core.probers.v``, ``probe_core.commands.v``. Of two installed
    copies of a distribution the first on the path counts, as for imports. `mentioned` names other
    groups: those that any file mentions, or that one might which cannot be read, become True. So
    nobody needs to read all files again for a group that is hardly ever there.
    """
    entries: list[EntryPoint] = []
    problems: list[Problem] = []
    archives: list[str] = []
    folders: list[_Folder] = []
    unread: set[str] = set()
    wanted = stem.encode()
    mentioned = mentioned or {}
    marks = {group: group.encode() for group in mentioned}
    for folder, name in _metadata_folders(sys.path if paths is None else paths, folders, archives):
        # Little is done here for each of hundreds of distributions, nearly all of them others'.
        metadata = f"{folder}/{name}"
        try:
            raw = read_regular(f"{metadata}/{FILE}", FILE_LIMIT)
        except (FileNotFoundError, NotADirectoryError):  # distutils left egg-info as a file
            continue
        except (OSError, ValueError) as error:
            mentioned.update(dict.fromkeys(mentioned, True))
            unread.add(metadata)
            problems.append(_broken(name, metadata, error))
            continue
        for group, mark in marks.items():
            if mark in raw:
                mentioned[group] = True
        if wanted not in raw:
            continue
        distribution, version = _identity(name)
        first = _first_copy(metadata, distribution, folders, unread)
        if first == metadata:
            try:
                lines = list(_parse(text_of(raw), stem))
            except ValueError as error:
                problems.append(_broken(name, metadata, error))
            else:
                entries += [EntryPoint(*line, metadata, distribution, version) for line in lines]
        elif os.path.dirname(first) == folder:  # an import finds only one of them
            reason = f"{os.path.basename(first)} lies beside it, and was used"
            problems.append(Problem(f"{distribution} {version}", reason, metadata))
    if archives:
        from probe_core.registry.archives import left_out

        problems += left_out(archives, stem)
    return entries, problems


def _broken(name: str, metadata: str, error: Exception) -> Problem:
    reason = (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error)
    reason = f"{FILE}: {reason}"
    return Problem(_identity(name)[0], reason, f"{metadata}/{reason}")


def _first_copy(
    metadata: str, distribution: str, folders: Iterable[_Folder], unread: set[str]
) -> str:
    """Return the folder of metadata that counts of a distribution which has `metadata`, too.

    That is the first on the path that is complete, and none of the `unread`.
    """
    start = f"/{_normal(distribution)}-"
    for folder, names, normal in folders:
        at = normal.find(start)
        while at >= 0:
            other = names[normal.count("/", 0, at)]
            path = f"{folder}/{other}"
            if path == metadata:
                return metadata
            is_copy = start == f"/{_normal(_identity(other)[0])}-" and path not in unread
            if is_copy and _is_complete(path):
                return path
            at = normal.find(start, at + len(start))
    return metadata


def _normal(distribution: str) -> str:
    """Return a name as package indexes compare it: ``Probe.Acme`` is ``probe-acme``."""
    return distribution.replace("_", "-").replace(".", "-").lower()


def _is_complete(metadata: str) -> bool:
    """Return whether a distribution is whole; what a half-removed one leaves shadows no copy."""
    return (
        os.path.exists(f"{metadata}/{FILE}")
        or os.path.exists(metadata + "/METADATA")
        or os.path.exists(metadata + "/PKG-INFO")
        or os.path.isfile(metadata)  # an egg-info file of distutils
    )


def _metadata_folders(
    paths: Iterable[str], folders: list[_Folder], archives: list[str]
) -> Iterator[tuple[str, str]]:
    """Yield where folders of metadata lie along the path, and their names.

    What is looked at is added to `folders`, files on the path are added to `archives`.
    """
    # The import system ignores what is no text in the path, and so does this.
    for path in dict.fromkeys(path or os.curdir for path in paths if isinstance(path, str)):
        try:
            folder = os.path.abspath(path)
            # pip renames a distribution to "~ame" or "-ame" while it replaces it.
            names = [n for n in os.listdir(folder) if n.endswith(_ENDINGS) and n[0] not in "~-"]
        except NotADirectoryError:
            archives.append(folder)
            continue
        except (OSError, ValueError):
            continue  # folders that are not there
        names.sort()
        folders.append((folder, names, _normal("/" + "/".join(names))))
        for name in names:
            yield folder, name


def _identity(folder: str) -> tuple[str, str]:
    """Return what the name of a folder of metadata says: distribution and version."""
    name, _, version = folder.rpartition(".")[0].partition("-")
    # An egg-info folder may be named "name-1.0-py3.11"; its version is the first part.
    return name.replace("_", "-"), version.partition("-")[0]


def identity_of(metadata: str) -> str:
    """Return the name and version of the distribution whose metadata lies at a path."""
    return " ".join(filter(None, _identity(os.path.basename(metadata))))


def _parse(text: str, stem: str) -> Iterator[Line]:
    """Yield (group, name, target) of the groups of an entry_points.txt that start with `stem`."""
    group, count = "", 0
    for line in map(str.strip, text.splitlines()):
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            group = line[1:].partition("]")[0].strip()
        elif group.startswith(stem):
            name, equals, target = line.partition("=")
            if not equals or not target.strip():
                raise ValueError(f"expected `name = module`, found {line[:80]!r}")
            count += 1
            if count > MAX_ENTRIES:
                raise ValueError(f"more than {MAX_ENTRIES} entry points")
            # `module [extra]`: extras are about installing, not about importing.
            yield group, name.strip(), target.partition("[")[0].strip()


# What a probe spends in the host on data that others wrote, counted over all of it.
#
# Each file is bounded already; thousands of them are not. What exceeds the budget is left out and
# named, and one distribution has a share, so that it uses up nobody else's.

SHARE = {"files": 128, "bytes": 1 << 20, "names": 8192, "seconds": 0.1}
"""What the data of one distribution may use. Judgements: 64 probers with a manifest each, of 16 KiB
where ours have 3; twice the names that one pattern may look at."""

TOTAL = {"files": 4096, "bytes": 8 << 20, "names": 32_768, "seconds": 0.5}
"""What the data of all distributions may use together. Seconds are of this thread's processor time:
a slow disk is nobody's fault, and must leave no prober out."""

_UNITS = {"files": "files", "bytes": "bytes", "names": "names of files", "seconds": "s of work"}


class Budget:
    """Counts what was used; `exceeded` maps each owner that got no more to the reason.

    `clock` gives the time that `charge` takes as `since`.
    """

    def __init__(self, clock: Callable[[], float] = thread_time) -> None:
        self.clock = clock
        self._is_exceeded = False
        self._total: dict[str, float] = dict.fromkeys(TOTAL, 0)
        self._own: dict[str, dict[str, float]] = {}
        self.exceeded: dict[str, str] = {}

    def charge(self, owner: str, since: float | None = None, **used: float) -> None:
        """Count what `owner` used, by the units of `SHARE`; `since` is a time of `clock`."""
        if since is not None:
            used["seconds"] = self.clock() - since
        own, total = self._own.setdefault(owner, dict.fromkeys(SHARE, 0)), self._total
        for unit, amount in used.items():
            own[unit] += amount
            total[unit] += amount
            if own[unit] > SHARE[unit] or total[unit] > TOTAL[unit]:
                self._is_exceeded = True

    def refusal(self, owner: str) -> str | None:
        """Return why `owner` gets no more; None while it does."""
        if not self._is_exceeded:  # as in nearly every probe
            return None
        own = self._own.get(owner)
        for used, limits, subject in ((own, SHARE, "its data"), (self._total, TOTAL, "all data")):
            unit = next((u for u in limits if used and used[u] > limits[u]), None)
            if unit is not None:
                amount = f"{limits[unit]:,} {_UNITS[unit]}"
                self.exceeded[owner] = reason = f"{subject} may take {amount} of a probe"
                return reason
        return None
