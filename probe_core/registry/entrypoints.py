"""Find entry points by reading files, because importlib.metadata is slow and fragile.

`importlib.metadata.entry_points()` takes 40 ms and raises for everyone when one unrelated
distribution on the path is malformed or not UTF-8. A walk over the folders takes about a
millisecond, and a broken distribution costs only itself.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GROUP = "probe_core.probers.v1"
GROUP_STEM = "probe_core.probers.v"
FILE_LIMIT = 1 << 20

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
    seen: set[str] = set()
    for metadata in _metadata_folders(sys.path if paths is None else paths):
        distribution, version = _identity(metadata)
        key = distribution.replace("_", "-").replace(".", "-").lower()
        if key in seen:
            continue
        try:
            raw = _read(metadata + "/entry_points.txt")
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            problems.append(Problem(distribution, f"entry_points.txt: {error}"))
            continue
        seen.add(key)
        if stem.encode() not in raw:
            continue
        try:
            lines = list(_parse(raw.decode("utf-8-sig"), stem))
        except ValueError as error:
            problems.append(Problem(distribution, f"entry_points.txt: {error}"))
            continue
        found += [EntryPoint(*line, metadata, distribution, version) for line in lines]
    return found, problems


def _metadata_folders(paths: Iterable[str]) -> Iterator[str]:
    for path in dict.fromkeys(path or os.curdir for path in paths):
        try:
            with os.scandir(path) as entries:
                names = [e.name for e in entries if e.name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue  # zip archives and folders that are not there
        for name in sorted(names):
            # pip renames a distribution to "~ame" while it replaces it.
            if not name.startswith("~"):
                yield os.path.abspath(path) + "/" + name


def _identity(metadata: str) -> tuple[str, str]:
    stem = os.path.basename(metadata).rpartition(".")[0]
    name, _, rest = stem.partition("-")
    # An egg-info folder may be named "name-1.0-py3.11"; its version is the first part.
    return name.replace("_", "-"), rest.partition("-")[0]


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        raw = os.read(handle, FILE_LIMIT + 1)
    finally:
        os.close(handle)
    if len(raw) > FILE_LIMIT:
        raise ValueError(f"longer than {FILE_LIMIT} bytes")
    return raw


def _parse(text: str, stem: str) -> Iterator[tuple[str, str, str]]:
    """Yield (group, name, target) of the wanted groups of an entry_points.txt."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            group = line[1:].partition("]")[0].strip()
        elif group.startswith(stem):
            name, equals, target = line.partition("=")
            if not equals or not target.strip():
                raise ValueError(f"expected `name = module`, found {line[:80]!r}")
            # `module [extra]`: extras are about installing, not about importing.
            yield group, name.strip(), target.partition("[")[0].strip()
