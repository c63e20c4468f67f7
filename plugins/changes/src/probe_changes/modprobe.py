"""Lines of modprobe.d: which module each is about, as modprobe reads them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_core.machine import Machine

COPIED = ("/etc/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")
"""What the makers of an initramfs copy: not /run/modprobe.d, which each boot writes anew."""

_VERBS = ("blacklist", "options", "install", "alias", "softdep")
_LIMIT = 64 << 10

_MAX_FILES = 256
"""Files of one folder: a distribution has about twenty."""


def files(machine: Machine, folders: Sequence[str]) -> Iterator[str]:
    """Yield the paths of files that end in .conf: modprobe reads no others."""
    for folder in folders:
        for name in machine.listdir(folder)[:_MAX_FILES]:
            if name.endswith(".conf"):
                yield f"{folder}/{name}"


def lines(machine: Machine, path: str) -> Iterator[list[str]]:
    """Yield the words of each line that is about a module, continued ones joined."""
    text = (machine.read(path, _LIMIT) or "").replace("\\\n", "")
    for words in map(str.split, text.splitlines()):
        if len(words) > 1 and words[0] in _VERBS:
            yield words


def module_of(words: Sequence[str]) -> str:
    """Return the module that a line is about, with underscores."""
    return words[1].replace("-", "_")
