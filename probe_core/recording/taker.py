"""Collects the files of a recording, each once, with the links on the ways to it."""

from __future__ import annotations

import posixpath
import re

from probe_core.recording.errors import BadRecording
from probe_core.recording.limits import MAX_DEPTH, MAX_ENTRIES, MAX_TOTAL
from probe_core.recording.masks import masked
from probe_core.recording.paths import check_path
from probe_core.recording.patterns import is_public

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.recording.anonymise import Anonymiser

__all__ = ["Taker"]

_RESERVE = 1024
"""Entries kept free for the links on the way to a file, for device nodes and for control groups."""


_IDENTITY = re.compile(r"/[a-z]+x[0-9a-f]{12,16}(?:/|\Z)")
"""A name that udev makes of a MAC or a GUID (enx0242ac110002): a serial number that no mask of
contents would reach, so what lies below it is left out."""


class Taker:
    """Notes the paths that are declared, then reads each file once, until a recording is full.

    Two probers may declare one file, by different names, and one of them a mask: so all
    declarations are noted before anything is read, by where the file really lies.
    """

    def __init__(self, machine: Machine, anonymiser: Anonymiser) -> None:
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.unreadable: list[str] = []
        self.over = 0
        self._machine = machine
        self._anonymiser = anonymiser
        self._declared: dict[str, dict[str, None]] = {}
        self._masks: dict[str, dict[str, None]] = {}
        self._real: dict[str, str] = {}
        self._total = 0

    def real(self, path: str) -> str:
        """Return where a path really lies; "" when a link on its way leads out of the machine."""
        real = ""
        for name in path.split("/")[1:]:
            real = self._step(f"{real}/{name}")
            if not real:
                break
        return real

    def declare(self, path: str, mask: str = "") -> None:
        """Note that the file at `path` is to be read, and what is to be masked in it."""
        if _IDENTITY.search(path):
            return
        real = self.real(path)
        self._declared.setdefault(real, {})[path] = None
        if mask:
            self._masks.setdefault(real, {})[mask] = None

    def take_declared(self) -> None:
        """Read every file that was declared."""
        for real, paths in self._declared.items():
            if self._has_room(_RESERVE):
                self._take(real, list(paths))
            else:
                self.over += 1

    def mark(self, path: str) -> None:
        """Note that a device node exists, by an empty file; it is not opened."""
        real = self.real(path)
        if not is_public(real, ("/dev/",)):
            self.unreadable.append(path)
        elif self._has_room(MAX_DEPTH):
            self._keep_links(path)
            self.put(real, b"")
        else:
            self.over += 1

    def put_at(self, path: str, content: bytes) -> None:
        """Keep content where `path` really lies, and the links on the way to it."""
        real = self.real(path)
        if real and self._has_room(MAX_DEPTH):
            self._keep_links(path)
            self.put(real, content)

    def put(self, path: str, content: bytes) -> None:
        """Keep one file, if a recording has room for it."""
        # `Recording` refuses more; a recording without the largest files is better than none.
        if self._total + len(content) > MAX_TOTAL or not self._has_room():
            self.over += 1
            return
        self._total += len(content)
        self.files[path] = content

    def _has_room(self, reserve: int = 0) -> bool:
        return len(self.files) + len(self.links) < MAX_ENTRIES - reserve

    def _take(self, real: str, paths: list[str]) -> None:
        try:
            content = self._read(real, paths)
        except IsADirectoryError:  # a link to a folder, such as `driver`: the link alone is kept
            content = None
        except (OSError, BadRecording):
            self.unreadable += paths
            return
        for path in paths:
            self._keep_links(path)
        if content is not None:
            self.put(real, masked(content, self._masks.get(real, ()), self._anonymiser))

    def _read(self, real: str, paths: list[str]) -> bytes:
        for path in (*paths, real):
            check_path(path)
        if not is_public(real):
            raise BadRecording("it lies where a recording takes nothing from")
        return self._machine.read_bytes(paths[0])

    def _keep_links(self, path: str) -> None:
        folder = ""
        for name in path.split("/")[1:]:
            step = f"{folder}/{name}"
            real = self._step(step)
            # Written relative, as the kernel does: an absolute one would leave an unpacked root.
            if real != step:
                self.links[step] = posixpath.relpath(real, folder or "/")
            folder = real

    def _step(self, path: str) -> str:
        real = self._real.get(path)
        if real is None:
            real = self._real[path] = self._machine.realpath(path)
        return real
