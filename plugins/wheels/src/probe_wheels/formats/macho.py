"""Machine and linked frameworks of a macOS library."""

from __future__ import annotations

from probe_wheels.formats.elf import BadFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_wheels.files import Opened

__all__ = ["MAGICS", "read_macho"]

THIN = b"\xcf\xfa\xed\xfe"
FAT = b"\xca\xfe\xba\xbe"
MAGICS = (THIN, FAT)

MAX_PARTS = 8
MAX_COMMANDS = 1024
MAX_BYTES = 256 << 10

MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64"}
_DYLIBS = (0xC, 0x80000018, 0x8000001F)  # LC_LOAD_DYLIB, _WEAK_DYLIB, _REEXPORT_DYLIB


def read_macho(file: Opened) -> tuple[list[str], list[str]]:
    """Return the machines and the names of linked libraries; raises `BadFile`."""
    if file.read(0, 4) == THIN:
        machine, names = _part(file, 0)
        return [machine], names
    machines, linked = [], []
    count = int.from_bytes(file.read(4, 4), "big")
    for index in range(min(count, MAX_PARTS)):
        machine, names = _part(file, int.from_bytes(file.read(8 + 20 * index + 8, 4), "big"))
        machines.append(machine)
        linked += names
    return machines, list(dict.fromkeys(linked))


def _part(file: Opened, start: int) -> tuple[str, list[str]]:
    head = file.read(start, 32)
    if len(head) < 32 or head[:4] != THIN:
        raise BadFile("it is cut within its first header")
    cpu, count, size = (int.from_bytes(head[at : at + 4], "little") for at in (4, 16, 20))
    commands = file.read(start + 32, min(size, MAX_BYTES))
    return MACHINES.get(cpu, str(cpu)), list(_linked(commands, min(count, MAX_COMMANDS)))


def _linked(raw: bytes, count: int) -> Iterator[str]:
    at = 0
    for _ in range(count):
        kind, size = (int.from_bytes(raw[at + step : at + step + 4], "little") for step in (0, 4))
        if size < 8 or at + size > len(raw):
            return
        if kind in _DYLIBS:
            name = int.from_bytes(raw[at + 8 : at + 12], "little")
            yield raw[at + name : at + size].partition(b"\0")[0].decode("utf-8", "replace")
        at += size
