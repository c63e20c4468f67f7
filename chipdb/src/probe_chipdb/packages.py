"""Finds vendor packages by their metadata alone, so that a broken distribution hides nobody.

importlib.metadata would cost 40 ms, and one malformed dist-info makes it raise for everyone.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GROUP = "probe_core.chipdb.v1"
_MOST = 2**20  # bytes of an entry_points.txt worth reading


class Package:
    """One data-only distribution: who it is, and the folder that holds its TOML files."""

    __slots__ = ("distribution", "folder", "name", "problem")

    def __init__(self, distribution: str, name: str, folder: str, problem: str = "") -> None:
        self.distribution = distribution
        self.name = name
        self.folder = folder
        self.problem = problem


def find(path: "Sequence[str] | None" = None) -> list[Package]:
    """Every vendor package on the path, by distribution and name; the first of a name wins."""
    given = sys.path if path is None else path
    places = list(dict.fromkeys(str(place) for place in given if not isinstance(place, bytes)))
    seen: dict[tuple[str, str], Package] = {}
    for place in places:
        for distribution, text in _entry_points(place):
            for name, module in _group(text):
                seen.setdefault((distribution, name), _package(distribution, name, module, places))
    return [seen[key] for key in sorted(seen)]


def _entry_points(place: str) -> "Iterator[tuple[str, str]]":
    """(distribution and version, text) of every entry_points.txt that names our group."""
    try:
        with os.scandir(place or ".") as entries:
            names = [entry.name for entry in entries if entry.name.endswith(".dist-info")]
    except (OSError, ValueError):  # ValueError: a path with a NUL
        return
    for name in sorted(names):
        try:
            file_name = f"{place or '.'}/{name}/entry_points.txt"
            with open(file_name, "rb", buffering=0, opener=_at_once) as file:
                data = file.read(_MOST) or b""
        except OSError:
            continue
        if GROUP.encode() in data:
            yield (
                name.removesuffix(".dist-info").replace("-", " ", 1),
                data.decode("utf-8", "replace"),
            )


def _at_once(path: str, flags: int) -> int:
    """Open without waiting: a pipe in the place of a file must not stop a probe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _group(text: str) -> "Iterator[tuple[str, str]]":
    inside = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            inside = line == f"[{GROUP}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip(), value.partition("[")[0].strip()


def _package(distribution: str, name: str, module: str, places: list[str]) -> Package:
    """The folder of `module`, found without importing it."""
    parts = module.partition(":")[0].split(".")
    if not all(part.isidentifier() for part in parts):
        return Package(distribution, name, "", f"its value {module!r} is no package name")
    for place in places:
        folder = os.path.join(place or ".", *parts)
        if os.path.isdir(folder):
            return Package(distribution, name, folder)
    return Package(distribution, name, "", f"its package {module!r} is not on the path")
