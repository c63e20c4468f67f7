"""Find entry points by reading files, because importlib.metadata is slow and fragile.

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

GROUP = "probe_core.probers.v1"
GROUP_STEM = "probe_core.probers.v"
FILE_LIMIT = 1 << 20
MAX_ENTRIES = 64
"""Probers of one distribution at most: each is a process."""

__all__ = ["GROUP", "EntryPoint", "Problem", "scan"]


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
    """A distribution that cannot be read: whose, and why."""

    __slots__ = ("what", "why")

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        self.why = why


def scan(
    paths: Iterable[str] | None = None, stem: str = GROUP_STEM
) -> tuple[list[EntryPoint], list[Problem]]:
    """Return the entry points in groups that start with `stem`, in the path's order.

    Of two installed copies of a distribution the first on the path counts, as for imports.
    """
    found: list[EntryPoint] = []
    problems: list[Problem] = []
    seen: dict[str, str] = {}
    for metadata in _metadata_folders(sys.path if paths is None else paths):
        distribution, version = _identity(metadata)
        try:
            raw = _read(metadata + "/entry_points.txt")
            key = distribution.replace("_", "-").replace(".", "-").lower()
            first = seen.setdefault(key, metadata)
            if raw is None or stem.encode() not in raw:
                if raw is None and first == metadata and not _complete(metadata):
                    del seen[key]
                continue
            if first != metadata:
                if os.path.dirname(first) == os.path.dirname(metadata):
                    why = f"{os.path.basename(first)} lies beside it, and was used"
                    problems.append(Problem(f"{distribution} {version}", why))
                continue
            lines = list(_parse(text_of(raw), stem))
        except (OSError, ValueError) as error:
            problems.append(Problem(distribution, f"entry_points.txt: {_why(error)}"))
            continue
        found += [EntryPoint(*line, metadata, distribution, version) for line in lines]
    return found, problems


def _why(error: Exception) -> str:
    return (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error)


def _complete(metadata: str) -> bool:
    """Return whether a distribution without entry points is one, not what was left of one."""
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
    name, _, rest = stem.partition("-")
    # An egg-info folder may be named "name-1.0-py3.11"; its version is the first part.
    return name.replace("_", "-"), rest.partition("-")[0]


def _read(path: str) -> bytes | None:
    """Return a file's bytes, None when there is none; raises `OSError` or `ValueError`."""
    try:
        return read_regular(path, FILE_LIMIT)
    except (FileNotFoundError, NotADirectoryError):  # distutils left egg-info as a file
        return None


def _parse(text: str, stem: str) -> Iterator[tuple[str, str, str]]:
    """Yield (group, name, target) of the wanted groups of an entry_points.txt."""
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
                raise ValueError(f"more than {MAX_ENTRIES} probers")
            # `module [extra]`: extras are about installing, not about importing.
            yield group, name.strip(), target.partition("[")[0].strip()
