"""Leaves out of a report what says whose computer it is, for a page that somebody hands on.

A recording replaces identities, so that a replay works. A page has no replay: it numbers UUIDs,
and has nothing in place of a serial number, a host, a user or a command line.
"""

from __future__ import annotations

import re

from probe_core.recording.anonymise import Anonymiser
from probe_core.recording.disguise import OMITTED, Disguise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from probe_core.model.document import ReportDoc

__all__ = ["without_identities"]

_IDENTITIES = ("serial", "uuid", "guid")
"""Parts of keys whose value, text or number, is an identity as a whole; ``mac`` is a whole word."""

_HOMES = re.compile(r"/(home|Users)/[^/\s:;,'\"]+")
"""Folders of users on Linux and macOS: the reader's own is not the only one in a report."""

_COMMON = frozenset(
    "root user admin ubuntu debian fedora linux localhost localdomain runner node host gpu cpu"
    " nvidia amd intel apple".split()
)
"""Names of hosts and users that name nobody, and without which a report could not be read."""

_LEAST_DIGITS = 8
"""Characters of a UUID's first group: without a decimal digit, less is the beginning of a word."""

_LEAST_NAME = 3
"""Characters of a name that is looked for in sentences; shorter ones are parts of other words."""


class _Numbers(Anonymiser):
    """Numbers identities in the order in which they are read: ``GPU-1``, ``MIG-2``."""

    def __init__(self) -> None:
        super().__init__(b"")
        self._seen: dict[str, str] = {}

    def digits(self, text: str) -> str:
        """Return the number of an identity; the same one wherever it is written."""
        # "GPU-accelerated" begins as a UUID does that was cut short.
        if len(text) < _LEAST_DIGITS and not any(char.isdecimal() for char in text):
            return text
        return self._seen.setdefault(text.lower(), str(len(self._seen) + 1))


class _Omission(Disguise):
    """Replaces text as a recording does, and leaves identities out instead of making some up."""

    def __init__(self, home: str | None, names: Iterable[str]) -> None:
        super().__init__(_Numbers(), None)
        self._home = home.rstrip("/") if home and home != "/" else None
        wanted = {name for name in names if len(name) >= _LEAST_NAME and name not in _COMMON}
        parts = "|".join(map(re.escape, sorted(wanted, key=len, reverse=True)))
        self._names = re.compile(rf"(?<![\w-])(?:{parts})(?![\w-])") if parts else None

    def named(self, key: str, value: Any) -> Any:
        """Return the value of a key, or `OMITTED` for an identity."""
        name = key.lower()
        parts = name.replace("-", "_").replace(".", "_").split("_")
        is_identity = "mac" in parts or any(part in name for part in _IDENTITIES)
        # What a prober prints is nobody's to judge; a recording has none of it, either.
        if is_identity or key == "stderr":
            return OMITTED
        return super().named(key, value)

    def text(self, text: str) -> str:
        """Return a text without UUIDs, homes and the names of this host and its user."""
        # Most texts of a report are short words: neither a path nor a UUID, which has a dash or
        # begins with its kind. Eight GPUs have 3,000 of them.
        if "/" in text:
            if self._home is not None:
                text = text.replace(self._home, "~")
            text = _HOMES.sub(r"/\1/user", super().text(text))
        elif "-" in text or text.startswith("uuid:"):
            text = super().text(text)
        return self._names.sub("…", text) if self._names is not None else text


def without_identities(report: ReportDoc, environ: Mapping[str, str]) -> ReportDoc:
    """Return a copy of a report without UUIDs, serial numbers, host, user and command lines.

    UUIDs become numbers, so that devices that have no other id stay apart. The names of the host
    and the user are those of this process and of its `environ`; homes of users are known anywhere.
    """
    import os

    names = [environ.get(name, "") for name in ("USER", "LOGNAME", "HOSTNAME")]
    # platform.node() on POSIX, without a module that takes three milliseconds to import.
    host = os.uname().nodename if hasattr(os, "uname") else environ.get("COMPUTERNAME", "")
    names += [host, host.partition(".")[0], report["node"].get("host") or ""]
    home = environ.get("HOME") or os.path.expanduser("~")
    plain: ReportDoc = _Omission(home, names).value(report)
    plain["node"]["host"] = plain["node"]["id"] = None
    return plain
