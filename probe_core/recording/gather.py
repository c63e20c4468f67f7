"""Records a machine: the files of a fixed list, read through a `Machine`, waking nothing."""

from __future__ import annotations

import posixpath
import re

from probe_core.recording.cgroups import cgroups
from probe_core.recording.disguise import Disguise
from probe_core.recording.errors import BadRecording
from probe_core.recording.kept import (
    ALWAYS,
    AWAKE_GPU,
    AWAKE_PCI,
    DESCRIBED,
    GPU,
    MARKS,
    OPERATIONAL,
    PCI,
    PLATFORM,
    VARIABLES,
)
from probe_core.recording.limits import MAX_ENTRIES, MAX_TOTAL
from probe_core.recording.paths import check_path
from probe_core.recording.private import edited
from probe_core.recording.recording import Recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = ["Gathered", "gather"]

_RESERVE = 1024
"""Entries kept free for the links on the way to a file, for marks and for control groups."""

_ASLEEP = ("suspended", "suspending", "resuming")


class Gathered:
    """A recording, and what had to be left out of it: paths and PCI addresses."""

    __slots__ = ("asleep", "over", "recording", "unreadable")

    def __init__(self, recording: Recording, taker: _Taker) -> None:
        self.recording = recording
        self.asleep = taker.asleep
        self.unreadable = taker.unreadable
        self.over = taker.over


def gather(machine: Machine, origin: str, disguise: Disguise | None = None) -> Gathered:
    """Return the recording of a Linux machine; `origin` is one sentence that says whose it is.

    Only what `kept` lists is read, and nothing that wakes a sleeping device. UUIDs are replaced.
    """
    disguise = disguise or Disguise()
    taker = _Taker(machine, disguise)
    taker.take(*ALWAYS)
    _take_pci(machine, taker)
    for name in machine.listdir(PLATFORM):
        if machine.exists(f"{PLATFORM}/{name}/of_node/compatible"):
            taker.take(*(f"{PLATFORM}/{name}/{one}" for one in DESCRIBED))
    taker.mark(*MARKS)
    for path, text in cgroups(machine).items():
        taker.put(path, text.encode())
    about = {
        "os": machine.os,
        "arch": machine.arch,
        "environ": _environ(machine, disguise),
        "origin": origin,
    }
    return Gathered(Recording(taker.files, taker.links, about), taker)


def _take_pci(machine: Machine, taker: _Taker) -> None:
    from probe_core.probers import pci

    computing = {one["ids"][0].removeprefix("pci:") for one in pci.devices(machine, {})}
    for address in machine.listdir(PCI):
        folder = f"{PCI}/{address}"
        names = GPU if address in computing else []
        if machine.read(f"{folder}/power/runtime_status", 32) in _ASLEEP:
            taker.asleep.append(address)
        else:
            names = [*names, *AWAKE_PCI, *(AWAKE_GPU if address in computing else ())]
            if address in computing and _is_operational(machine, taker, folder):
                names += OPERATIONAL
        taker.take(*(f"{folder}/{name}" for name in names))


def _is_operational(machine: Machine, taker: _Taker, folder: str) -> bool:
    names = [name for name in AWAKE_GPU if name.endswith("status")]
    paths = [path for name in names for path in taker.found(f"{folder}/{name}")]
    return any((machine.read(path, 64) or "").lower() == "operational" for path in paths)


def _environ(machine: Machine, disguise: Disguise) -> dict[str, str]:
    home = machine.environ.get("HOME") or "\0"  # a driver's manifest may lie in one's own folder
    found = {name: machine.environ[name] for name in VARIABLES if name in machine.environ}
    return {
        # Bytes that are not UTF-8 come as lone surrogates, which no document can hold.
        name: disguise.uuids(value.replace(home, "/home")).encode("utf-8", "replace").decode()
        for name, value in found.items()
    }


class _Taker:
    """Takes files and the links on the way to them, until a recording is full."""

    def __init__(self, machine: Machine, disguise: Disguise) -> None:
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.asleep: list[str] = []
        self.unreadable: list[str] = []
        self.over = 0
        self._machine = machine
        self._disguise = disguise
        self._real: dict[str, str] = {}
        self._total = 0

    def take(self, *patterns: str) -> None:
        """Take every file, and every link to a folder, that a pattern names."""
        for pattern in patterns:
            for path in self.found(pattern):
                self._take(path)

    def mark(self, *patterns: str) -> None:
        """Note that a path is there, without opening it."""
        for pattern in patterns:
            for path in self.found(pattern):
                self.put(self._way(path), b"")

    def found(self, pattern: str) -> list[str]:
        """Return the paths that a pattern names and that are there."""
        paths = [""]
        for part in pattern.split("/")[1:]:
            if "*" in part or "#" in part:
                fits = re.compile(re.escape(part).replace(r"\*", ".*").replace(r"\#", "[0-9]+"))
                paths = [
                    f"{path}/{name}"
                    for path in paths
                    for name in self._machine.listdir(path or "/")
                    if fits.fullmatch(name)
                ]
            else:
                paths = [f"{path}/{part}" for path in paths]
        return [path for path in paths if self._machine.exists(path)]

    def put(self, path: str, content: bytes) -> None:
        """Keep one file, if a recording has room for it."""
        if self._total + len(content) > MAX_TOTAL:
            self.over += 1
            return
        self._total += len(content)
        self.files[path] = content

    def _take(self, path: str) -> None:
        if len(self.files) + len(self.links) >= MAX_ENTRIES - _RESERVE:
            self.over += 1
            return
        try:
            check_path(path)
            content = self._machine.read_bytes(path)
        except IsADirectoryError:
            self._way(path)
            return
        except (OSError, BadRecording):
            self.unreadable.append(path)
            return
        self.put(self._way(path), edited(path, content, self._disguise))

    def _way(self, path: str) -> str:
        """Keep the links on the way to a path; returns where it really lies."""
        here = ""
        for name in path.split("/")[1:]:
            step = f"{here}/{name}"
            real = self._real.get(step) or self._machine.realpath(step)
            self._real[step] = real
            if real != step:
                self.links[step] = posixpath.relpath(real, here or "/")
            here = real
        return here
