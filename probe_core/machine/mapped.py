"""A recorded root on a file system that refuses its names: how they are written, and its links.

Windows reads the colon of a PCI address (0000:01:00.0) as the stream of a file, and lets
administrators alone make links. So the names are written with other characters, and the links
stand in a table at the top of the root, by which its presence is known on every system.
"""

from __future__ import annotations

import os
from errno import ELOOP
from posixpath import normpath

from probe_core.machine import read_regular, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


LINKS = "links.table"
"""Name of the table at the top of the root: paths and targets in turn, each ended by a NUL."""

_LIMIT = 16 << 20
_MAX_LINKS = 40
"""Links that are followed for one path, as many as Linux follows (path_resolution(7))."""

# Each in the private area, as WSL and Cygwin write them.
_RESERVED = '<>:"|?*\\'
_SHIFT = 0xF000
_TO_DISK = {ord(char): _SHIFT + ord(char) for char in _RESERVED}
_FROM_DISK = {_SHIFT + code: code for code in range(0x20, 0x7F)}
_DEVICES = frozenset(
    "con prn aux nul com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6"
    " lpt7 lpt8 lpt9".split()
)
"""Names that Windows takes for devices in every folder (Win32, "Naming Files")."""


def is_needed() -> bool:
    """Return whether this system's file systems refuse a recording's names."""
    import sys

    return os.sep != "/" or sys.platform == "win32"


def encoded(path: str) -> str:
    """Return an absolute path of the machine as it is written below the root."""
    return "/".join(map(_encoded, path.split("/")))


def _encoded(name: str) -> str:
    text = name.translate(_TO_DISK)
    if text.partition(".")[0].lower() in _DEVICES:
        text = chr(_SHIFT + ord(text[0])) + text[1:]
    # Windows drops a dot or blank at the end of a name.
    if text[-1:] in (".", " ") and name not in (".", ".."):
        text = text[:-1] + chr(_SHIFT + ord(text[-1]))
    return text


class Mapped:
    """The names and links of one such root."""

    __slots__ = ("_links", "_root")

    def __init__(self, root: str, links: Mapping[str, str]) -> None:
        self._root = root
        self._links = links

    def place(self, path: str) -> str:
        """Return where the machine's `path` lies for this process; raises `OSError` for a loop."""
        return self._root + encoded(self.real(path))

    def real(self, path: str) -> str:
        """Return the machine's path with all links resolved; none leads out of the root."""
        # As `Machine` does of other roots: ".." goes before links.
        parts, done, followed = normpath(f"/{path}").split("/")[::-1], [""], 0
        while parts:
            name = parts.pop()
            if name in ("", "."):
                continue
            if name == "..":
                done = done[:-1] or [""]
                continue
            target = self._links.get("/".join([*done, name]))
            if target is None:
                done.append(name)
                continue
            followed += 1
            if followed > _MAX_LINKS:
                raise OSError(ELOOP, os.strerror(ELOOP), path)
            done = [""] if target.startswith("/") else done
            parts += target.split("/")[::-1]
        return "/".join(done) or "/"

    def link(self, path: str) -> str:
        """Return the target of the link at `path` as it is written ("" for what is no link)."""
        folder, _, name = normpath(path).rpartition("/")
        return self._links.get(f"{self.real(folder).rstrip('/')}/{name}", "")

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a folder, links among them; raises `OSError`."""
        folder = self.real(path).rstrip("/")
        own = {name.translate(_FROM_DISK) for name in os.listdir(self._root + encoded(folder))}
        links = {
            link.rpartition("/")[2] for link in self._links if link.rpartition("/")[0] == folder
        }
        return sorted(own | links)


def table(links: Mapping[str, str]) -> bytes:
    """Return the table of links as it is written."""
    return "".join(f"{path}\0{target}\0" for path, target in links.items()).encode()


def mapped(root: str) -> Mapped:
    """Return the map of a root that has a table; a damaged one has no links."""
    try:
        fields = text_of(read_regular(f"{root}/{LINKS}", _LIMIT)).split("\0")
    except (OSError, ValueError):
        fields = []
    pairs = zip(fields[::2], fields[1::2], strict=False)
    return Mapped(root, {path: target for path, target in pairs if target})
