"""What was read of files that have not changed since, kept between two looks at an environment.

A current torch with its CUDA libraries costs 50 ms a look without it, and 1 s from a cold disk.
The key is the file's identity, not its path. Whatever is odd about the cache, it is not used.
"""

from __future__ import annotations

import os

from probe_core.jsontext import parse, write
from probe_wheels.records import Listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_wheels.documents import LibraryDoc

__all__ = ["Cache", "cache_path"]

SCHEMA = 2
"""Raised whenever a reader learns something: what an older one read is then read again."""

MAX_BYTES = 16 << 20
MAX_ENTRIES = 50_000


def cache_path(environ: Mapping[str, str]) -> str | None:
    """Return the file of the cache: below XDG_CACHE_HOME, else the home's ``.cache``."""
    if os.name == "nt":
        base = environ.get("LOCALAPPDATA", "")
    else:
        home = environ.get("HOME", "")
        base = environ.get("XDG_CACHE_HOME") or (os.path.join(home, ".cache") if home else "")
    return (
        os.path.join(base, "probe-core", f"wheels-{SCHEMA}.json") if os.path.isabs(base) else None
    )


class Cache:
    """The cache of one file; `save` writes it when something was added."""

    __slots__ = ("_changed", "_entries", "_path", "_used")

    def __init__(self, path: str) -> None:
        self._path = path
        self._entries: dict[str, Any] = _load(path)
        self._used: set[str] = set()
        self._changed = False

    def library(self, key: str) -> LibraryDoc | None:
        """Return what a file has code for; None when it is not known."""
        value = self._value(key)
        return value if _is_library(value) else None

    def keep_library(self, key: str, document: LibraryDoc) -> None:
        """Remember what a file has code for."""
        self._keep(key, document)

    def listing(self, key: str) -> Listing | None:
        """Return the files of a RECORD; None when it is not known."""
        value = self._value(key)
        if not isinstance(value, list) or len(value) != 4 or not all(map(_is_texts, value)):
            return None
        listing = Listing()
        listing.libraries, gfx, listing.outside, cubins = value
        listing.gfx = set(gfx)
        pairs = (text.partition("=") for text in cubins)
        listing.cubins = {target: int(count) for target, _, count in pairs if count.isdecimal()}
        return listing

    def keep_listing(self, key: str, listing: Listing) -> None:
        """Remember the files of a RECORD."""
        cubins = [f"{target}={count}" for target, count in listing.cubins.items()]
        self._keep(key, [listing.libraries, sorted(listing.gfx), listing.outside, cubins])

    def save(self) -> None:
        """Write the cache in one step; an error changes nothing and is nobody's problem."""
        if not self._changed:
            return
        entries = self._entries
        if len(entries) > MAX_ENTRIES:  # what this look did not use is dropped
            entries = {key: value for key, value in entries.items() if key in self._used}
        temporary = f"{self._path}.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(os.open(temporary, flags, 0o600), "w") as file:
                file.write(write({"schema": SCHEMA, "entries": entries}))
            os.replace(temporary, self._path)
        except OSError:
            try:
                os.unlink(temporary)
            except OSError:
                pass

    def _value(self, key: str) -> Any:
        self._used.add(key)
        return self._entries.get(key)

    def _keep(self, key: str, value: object) -> None:
        self._used.add(key)
        self._entries[key] = value
        self._changed = True


def _load(path: str) -> dict[str, Any]:
    try:
        status = os.lstat(path)
        # Whoever could write it decides what a wheel is said to have code for.
        untrusted = os.name != "nt" and (status.st_uid != os.geteuid() or status.st_mode & 0o022)
        if untrusted or status.st_size > MAX_BYTES or os.path.islink(path):
            return {}
        with open(path, "rb") as file:
            document = parse(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    entries = document.get("entries") if isinstance(document, dict) else None
    return entries if isinstance(entries, dict) and document.get("schema") == SCHEMA else {}


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_library(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    return all(_is_groups(value.get(key, [])) for key in ("cuda", "hip"))


def _is_groups(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, list) and len(item) == 2 and _is_texts(item[0]) and type(item[1]) is int
        for item in value
    )
