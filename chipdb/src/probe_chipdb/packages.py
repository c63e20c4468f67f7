"""Finds vendor packages by their metadata alone, so that a broken distribution hides no other.

importlib.metadata costs 40 ms, and one malformed dist-info on the path makes it raise for all
(seen with CPython 3.11 and 3.13).
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GROUP = "probe_core.chipdb.v1"
_STEM = "probe_core.chipdb.v"  # of the groups of other versions, which are named and not read
_MAX_SHOWN = 60  # characters of a foreign group in a sentence
_MAX_BYTES = 2**20  # of an entry_points.txt: far more than any distribution needs


class Package:
    """One data-only distribution: its name, and the folder that holds its TOML files.

    problem: why there is no folder, or the empty text; fix: what to do about that.
    """

    __slots__ = ("distribution", "fix", "folder", "name", "problem")

    def __init__(
        self,
        distribution: str,
        name: str,
        folder: str,
        problem: str = "",
        fix: str = "correct the entry point or reinstall",
    ) -> None:
        self.distribution = distribution
        self.name = name
        self.folder = folder
        self.problem = problem
        self.fix = fix


def find(path: "Sequence[str] | None" = None) -> list[Package]:
    """Every vendor package on the path, by distribution and name; the first of a name wins."""
    entries = sys.path if path is None else path
    # sys.path may hold anything; Python's own import ignores what is no text, too.
    folders = list(dict.fromkeys(str(entry) for entry in entries if not isinstance(entry, bytes)))
    packages: dict[tuple[str, str], Package] = {}
    others: dict[tuple[str, str], Package] = {}
    for folder in folders:
        for distribution, text in _entry_points(folder):
            for group, name, module in _groups(text):
                key = (distribution, name)
                if group != GROUP:
                    others.setdefault(key, _of_another_version(distribution, name, group))
                elif key not in packages:
                    packages[key] = _package(distribution, name, module, folders)
    # One that serves several versions is read, and nothing is missing.
    packages = others | packages
    return [packages[key] for key in sorted(packages)]


def _of_another_version(distribution: str, name: str, group: str) -> Package:
    problem = f"it needs {group[:_MAX_SHOWN]!r}, this chipdb reads {GROUP!r}"
    fix = "upgrade probe-chipdb, or install a version of it that fits"
    return Package(distribution, name, "", problem, fix)


def _entry_points(folder: str) -> "Iterator[tuple[str, str]]":
    """(distribution and version, text) of every entry_points.txt that names a group of ours."""
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in entries if entry.name.endswith(".dist-info")]
    except (OSError, ValueError):  # ValueError: a path with a NUL
        return
    for name in sorted(names):
        try:
            path = f"{folder or '.'}/{name}/entry_points.txt"
            with open(path, "rb", buffering=0, opener=_without_blocking) as file:
                data = file.read(_MAX_BYTES) or b""
        except OSError:
            continue
        if _STEM.encode() in data:
            yield (
                name.removesuffix(".dist-info").replace("-", " ", 1),
                data.decode("utf-8", "replace"),
            )


def _without_blocking(path: str, flags: int) -> int:
    """Open without waiting: an ordinary open of a FIFO blocks until a writer comes."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _groups(text: str) -> "Iterator[tuple[str, str, str]]":
    """(group, name, module) of every entry point of our group, of whatever version."""
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            group = line[1:].partition("]")[0].strip()
        elif group.startswith(_STEM) and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield group, name.strip(), value.partition("[")[0].strip()


def _package(distribution: str, name: str, module: str, path: list[str]) -> Package:
    """The folder of `module`, found without importing it."""
    parts = module.partition(":")[0].split(".")
    if not all(part.isidentifier() for part in parts):
        return Package(distribution, name, "", f"its value {module!r} is no package name")
    for entry in path:
        folder = os.path.join(entry or ".", *parts)
        if os.path.isdir(folder):
            return Package(distribution, name, folder)
    return Package(distribution, name, "", f"its package {module!r} is not on the path")
