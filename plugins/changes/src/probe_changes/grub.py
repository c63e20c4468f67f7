"""GRUB's menu and environment block, and entries of the Boot Loader Specification, as text."""

from __future__ import annotations

import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_ENTRIES = 512
_LINUX = ("linux", "linux16", "linuxefi")
_ID = "$menuentry_id_option"


def grub_environment(text: str) -> dict[str, str]:
    """Return the variables of an environment block (``key=value`` lines, padded with #)."""
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def deployment_of(options: str) -> str:
    """Return the tree that a kernel's parameters name for ostree, without the number of its slot.

    ostree swaps boot.0 and boot.1 as it writes entries; the rest names kernel and deployment.
    """
    value = next((o for o in options.split() if o.startswith("ostree=")), "")
    return "/".join(value.removeprefix("ostree=").strip("/").split("/")[2:])


class BootEntry:
    """One entry of a menu. `entries` are those of a submenu; `options` None: they are not seen."""

    def __init__(self, name: str, title: str, is_menu: bool = False) -> None:
        self.name = name
        self.title = title
        self.is_menu = is_menu
        self.entries: list[BootEntry] = []
        self.image = ""
        self.options: str | None = ""
        self.version = ""
        self.sort_key = ""
        self.machine_id = ""

    @classmethod
    def of_file(cls, name: str, text: str) -> BootEntry:
        """Return the entry of a file below loader/entries."""
        fields: dict[str, list[str]] = {}
        for line in text.splitlines():
            key, _, value = line.strip().partition(" ")
            fields.setdefault(key, []).append(value.strip())
        entry = cls(name, fields.get("title", [name])[0])
        entry.image = fields.get("linux", fields.get("uki", fields.get("efi", [""])))[0]
        entry.options = " ".join(fields.get("options", []))
        entry.version = fields.get("version", [""])[0]
        entry.sort_key = fields.get("sort-key", [""])[0]
        entry.machine_id = fields.get("machine-id", [""])[0]
        return entry

    @property
    def deployment(self) -> str:
        """The tree that ostree starts with the entry; "" without ostree."""
        return deployment_of(self.options or "")

    @property
    def is_exhausted(self) -> bool:
        """Whether no try is left of those that boot counting gave it (``NAME+0-3``)."""
        tries = self.name.rpartition("+")[2] if "+" in self.name else ""
        return tries.partition("-")[0] == "0"


class GrubMenu:
    """What grub.cfg says: its entries, and the value that `default` is set to.

    `is_certain` is False where the text sets it to several values.
    """

    def __init__(self, text: str) -> None:
        self.uses_bls = False
        self.entries: list[BootEntry] = []
        self._defaults: list[str] = []
        self._read(text)

    @property
    def default(self) -> str:
        """The value for a boot without next_entry, as it is written; "" where none is set."""
        return self._defaults[0] if self._defaults else ""

    @property
    def is_certain(self) -> bool:
        """Whether all lines that set the default agree."""
        return len(set(self._defaults)) < 2

    def _read(self, text: str) -> None:
        stack: list[BootEntry | None] = []
        count = 0
        for raw in text.splitlines():
            line = raw.strip()
            word = line.partition(" ")[0].partition("\t")[0]
            if word in ("menuentry", "submenu") and line.endswith("{"):
                count += 1
                if count > _MAX_ENTRIES:
                    return
                entry = _entry(line, word == "submenu")
                self._level(stack).append(entry)
                stack.append(entry)
            elif line.endswith("{"):
                stack.append(None)
            elif line == "}" and stack:
                stack.pop()
            else:
                self._line(line, word, next((e for e in reversed(stack) if e), None))

    def _level(self, stack: Sequence[BootEntry | None]) -> list[BootEntry]:
        menu = next((entry for entry in reversed(stack) if entry is not None), None)
        return menu.entries if menu is not None else self.entries

    def _line(self, line: str, word: str, entry: BootEntry | None) -> None:
        if word == "blscfg":
            self.uses_bls = True
        elif entry is None and line.startswith("set default="):
            value = line.partition("=")[2].strip().strip("\"'")
            if "next_entry" not in value:
                self._defaults.append(value)
        elif entry is not None and word in _LINUX and not entry.image:
            _, *rest = line.split()
            entry.image, *options = rest or [""]
            entry.options = " ".join(part for part in options if not part.startswith("$"))

    def entry(self, wanted: str) -> BootEntry | None:
        """Return the entry of a number, title or id, ``submenu>entry`` included.

        Where a menu has no such entry its first one starts, in a submenu too (GRUB, run_menu).
        """
        entries, found = self.entries, None
        for part in _split(wanted):
            chosen = _chosen(entries, part)
            if chosen is None:
                break
            found, entries = chosen, chosen.entries
        found = found or (self.entries[0] if self.entries else None)
        while found is not None and found.is_menu:
            found = found.entries[0] if found.entries else None
        return found


def _split(wanted: str) -> list[str]:
    """Return the parts of a name; ``>>`` is a > of a title."""
    return [part.replace("\0", ">") for part in wanted.replace(">>", "\0").split(">")]


def _chosen(entries: Sequence[BootEntry], part: str) -> BootEntry | None:
    for entry in entries:
        if part and part in (entry.name, entry.title):
            return entry
    if part.isdecimal() and len(part) < 5 and int(part) < len(entries):
        return entries[int(part)]
    return None


def _entry(line: str, is_menu: bool) -> BootEntry:
    try:
        words = shlex.split(line)
    except ValueError:  # a quote that does not end
        words = line.split()
    title = words[1] if len(words) > 1 else ""
    name = ""
    for place, word in enumerate(words[:-1]):
        if word in (_ID, "--id"):
            name = words[place + 1]
        elif word.startswith("--id="):
            name = word[5:]
    return BootEntry(name or title, title, is_menu)
