"""Find entry points by reading files: importlib.metadata is slow, and one bad file stops it.

`importlib.metadata.entry_points()` takes 40 ms and raises for everyone when one unrelated
distribution on the path is malformed or not UTF-8. A walk over the folders takes about a
millisecond, and a broken distribution costs only itself.
"""

from __future__ import annotations

import os
import sys

from probe_core.machine.files import read_regular, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    Line: TypeAlias = tuple[str, str, str]
    """Group, name and target."""

GROUP = "probe_core.probers.v1"
GROUP_STEM = "probe_core.probers.v"
CHIPS = "probe_core.chipdb.v1"
"""Group of vendors' chip packages, which chipdb reads by itself."""
FILE = "entry_points.txt"

FILE_LIMIT = 1 << 20
"""Bytes of one file; setuptools' own, the longest of a plain environment, has 2,449."""

MAX_ENTRIES = 64
"""Entry points of one distribution at most: each prober is a process. Ours declare one or two."""

__all__ = ["CHIPS", "GROUP", "EntryPoint", "Problem", "scan"]


class EntryPoint:
    """One line of one distribution's entry points.

    `site` is the folder of the path that holds the metadata folder `metadata`.
    """

    __slots__ = ("distribution", "group", "metadata", "name", "site", "target", "version")

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

    __slots__ = ("distribution", "evidence", "reason")

    def __init__(self, distribution: str, reason: str, evidence: str) -> None:
        self.distribution = distribution
        self.reason = reason
        self.evidence = evidence


class _SecondCopy(Exception):
    """Two metadata folders of one distribution lie side by side; an import finds only one."""


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
    copies: dict[str, str] = {}
    for metadata in _metadata_folders(sys.path if paths is None else paths):
        distribution, version = _identity(metadata)
        try:
            raw = _read(f"{metadata}/{FILE}")
            if raw and mentioned:
                mentioned.update((group, True) for group in mentioned if group.encode() in raw)
            lines = _lines_of_first_copy(raw, metadata, distribution, stem, copies)
        except _SecondCopy as second:
            problems.append(Problem(f"{distribution} {version}", str(second), metadata))
            continue
        except (OSError, ValueError) as error:
            if mentioned:
                mentioned.update(dict.fromkeys(mentioned, True))
            reason = f"{FILE}: {_reason(error)}"
            problems.append(Problem(distribution, reason, f"{metadata}/{reason}"))
            continue
        entries += [EntryPoint(*line, metadata, distribution, version) for line in lines]
    return entries, problems


def _lines_of_first_copy(
    raw: bytes | None, metadata: str, distribution: str, stem: str, copies: dict[str, str]
) -> list[Line]:
    """Return the lines of a distribution's groups; `copies` maps each name to its first folder.

    Raises `ValueError` for a line that makes no sense, `_SecondCopy` when two lie together.
    """
    if raw is None and not _is_complete(metadata):
        return []  # what a half-removed distribution leaves shadows no copy behind it
    first = copies.setdefault(_normal(distribution), metadata)
    if raw is None or stem.encode() not in raw:
        return []
    if first == metadata:
        return list(_parse(text_of(raw), stem))
    if os.path.dirname(first) == os.path.dirname(metadata):
        raise _SecondCopy(f"{os.path.basename(first)} lies beside it, and was used")
    return []


def _normal(distribution: str) -> str:
    """Return a name as package indexes compare it: ``Probe.Acme`` is ``probe-acme``."""
    return distribution.replace("_", "-").replace(".", "-").lower()


def _reason(error: Exception) -> str:
    return (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error)


def _is_complete(metadata: str) -> bool:
    """Return whether a distribution without entry points is whole: it has its metadata."""
    return (
        os.path.isfile(metadata)  # an egg-info file of distutils
        or os.path.exists(metadata + "/METADATA")
        or os.path.exists(metadata + "/PKG-INFO")
    )


def _metadata_folders(paths: Iterable[str]) -> Iterator[str]:
    # The import system ignores what is no text in the path, and so does this.
    for path in dict.fromkeys(path or os.curdir for path in paths if isinstance(path, str)):
        try:
            folder = os.path.abspath(path)
            with os.scandir(folder) as entries:
                names = [e.name for e in entries if e.name.endswith((".dist-info", ".egg-info"))]
        except (OSError, ValueError):
            continue  # zip archives and folders that are not there
        for name in sorted(names):
            # pip renames a distribution to "~ame" or "-ame" while it replaces it.
            if name[0] not in "~-":
                yield f"{folder}/{name}"


def _identity(metadata: str) -> tuple[str, str]:
    stem = os.path.basename(metadata).rpartition(".")[0]
    name, _, version = stem.partition("-")
    # An egg-info folder may be named "name-1.0-py3.11"; its version is the first part.
    return name.replace("_", "-"), version.partition("-")[0]


def _read(path: str) -> bytes | None:
    """Return a file's bytes, None when there is none; raises `OSError` or `ValueError`."""
    try:
        return read_regular(path, FILE_LIMIT)
    except (FileNotFoundError, NotADirectoryError):  # distutils left egg-info as a file
        return None


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
