"""Replaces what identifies one piece of hardware, so that a recording can be shared.

A UUID is a serial number in all but name. But visibility variables name devices by it, often by
its beginning: so each digit is replaced by one that depends on the digits before it. Equal
beginnings stay equal, different UUIDs stay different, and the secret that would recover them is
kept nowhere.
"""

from __future__ import annotations

import os
import re
import sys

from probe_core.model.ids import UUID_PREFIXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from probe_core.model.document import RecordedAnswer, ReportDoc


_PREFIXES = "|".join(f"(?<={prefix}-)" for prefix in UUID_PREFIXES)
_UUID = re.compile(
    # After a prefix digits of any number: ROCr's have 16 without dashes, variables cut them short.
    rf"(?:{_PREFIXES})(?!(?:{'|'.join(UUID_PREFIXES)})-)[0-9A-Fa-f-]+"
    r"|\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b"
)


class Anonymiser:
    """Replaces the identities of one recording, each by the same one wherever it is written."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = os.urandom(16) if secret is None else secret

    def uuids(self, text: str) -> str:
        """Return a text with its UUIDs replaced: after a known prefix also those cut short."""
        return _UUID.sub(lambda match: self.digits(match[0]), text)

    def digits(self, text: str) -> str:
        """Return hexadecimal digits replaced one by one; anything else stays."""
        replaced, before = [], self._hash()
        for char in text:
            if char.lower() in "0123456789abcdef":
                digit = f"{int(char, 16) ^ before.digest()[0] & 15:x}"
                before.update(char.lower().encode())
                char = digit.upper() if char.isupper() else digit
            replaced.append(char)
        return "".join(replaced)

    def number(self, value: int) -> int:
        """Return a 64-bit number replaced as its 16 digits are; 0, which means unknown, for others.

        A number that is longer or negative has no digits to replace, and must not stay either.
        """
        return int(self.digits(f"{value:016x}"), 16) if 0 < value < 1 << 64 else 0

    def serial(self, text: str) -> str:
        """Return each letter and digit replaced by one of its kind; anything else stays."""
        replaced, before = [], self._hash(b"serial")
        for char in text:
            shift = before.digest()[0]
            before.update(char.encode("utf-8", "replace"))
            if char.isdecimal():
                char = str((int(char) + shift) % 10)
            elif char.isalnum():
                first = "A" if char.isupper() else "a"
                char = chr(ord(first) + (ord(char) + shift) % 26)
            replaced.append(char)
        return "".join(replaced)

    def _hash(self, start: bytes = b"") -> hashlib.blake2b:
        """Return a hash that is fed what stands before a character: time stays linear."""
        import hashlib  # brings OpenSSL: a page that leaves identities out replaces none

        return hashlib.blake2b(start, key=self._secret, digest_size=1)


# The kinds of identity that a prober's manifest may say a file holds, and how each is replaced.
#
# A closed set: what a recording leaves out is decided here, and reviewed here. A kind stands for a
# whole file, or with a field for the lines that begin with it: ``decimal64:unique_id``.

MAX_FIELD = 64
"""Characters of a field's name; the longest of /proc and /sys seen has 32."""


def masked(content: bytes, masks: Iterable[str], anonymiser: Anonymiser) -> bytes:
    """Return a file's content without the identities that `masks` say it holds."""
    for mask in masks:
        kind, _, field = mask.partition(":")
        text = content.decode("utf-8", "replace")
        replace = KINDS[kind]
        text = _in_field(text, field, replace, anonymiser) if field else replace(text, anonymiser)
        content = text.encode()
    return content


def check_mask(mask: object) -> str:
    """Return a mask that can be applied; raises `ValueError` with the mistake."""
    kind, colon, field = mask.partition(":") if isinstance(mask, str) else ("", "", "")
    if kind not in KINDS:
        raise ValueError(f"the kinds are {', '.join(KINDS)}; found {str(mask)[:60]!r}")
    if colon and not (0 < len(field) <= MAX_FIELD and field.isprintable() and field.strip()):
        raise ValueError(f"a field has 1 to {MAX_FIELD} printable characters")
    return str(mask)


def _in_field(text: str, field: str, replace: Replace, anonymiser: Anonymiser) -> str:
    """Replace the values of the lines ``FIELD VALUE``, ``FIELD: VALUE`` and ``FIELD = VALUE``.

    What surrounds a value is written anew: white space of any kind must not hide one.
    """
    line = re.compile(rf"\s*{re.escape(field)}(?:\s*([:=])|\s)\s*(.*)", re.DOTALL)
    lines = []
    for whole in text.removesuffix("\n").split("\n") if text else ():
        if match := line.fullmatch(whole):
            value = replace(match[2].strip(), anonymiser).strip()
            whole = f"{field}{match[1] or ''} {value}"
        lines.append(whole + "\n")
    return "".join(lines)


def _uuid(text: str, anonymiser: Anonymiser) -> str:
    """UUIDs, wherever they stand in the text: after a vendor's prefix, or in canonical form."""
    return anonymiser.uuids(text)


def _hex64(text: str, anonymiser: Anonymiser) -> str:
    """One number of up to 64 bits in hexadecimal digits; 0 for what is none."""
    return f"{anonymiser.number(_number(text, 16)):016x}\n"


def _decimal64(text: str, anonymiser: Anonymiser) -> str:
    """One number of up to 64 bits in decimal digits; 0 for what is none."""
    return f"{anonymiser.number(_number(text, 10))}\n"


def _number(text: str, base: int) -> int:
    # A number of 64 bits has 20 decimal digits; of a long one `int` takes quadratic time.
    plain = text.strip().lower().removeprefix("0x")
    try:
        return int(plain, base) if len(plain) <= 20 and plain.isalnum() else 0
    except ValueError:
        return 0


def _serial(text: str, anonymiser: Anonymiser) -> str:
    """A serial number of any form: each letter and digit is replaced by one of its kind."""
    return anonymiser.serial(text)


def _cpuinfo(text: str, anonymiser: Anonymiser) -> str:
    """/proc/cpuinfo: lines with a serial number are left out, and all x86 blocks but the first.

    The blocks of an x86 processor are alike, and a server has hundreds.
    """
    if text.startswith("processor") and "\nvendor_id" in text:
        text = text.partition("\n\n")[0] + "\n\n"
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.lower().startswith("serial"))


def _addresses(text: str, anonymiser: Anonymiser) -> str:
    """Addresses in the kernel, which it shows to root alone: zeros, as it shows them to others."""
    return re.sub(r"\b0x[0-9a-fA-F]{8,16}\b", lambda match: "0x" + "0" * (len(match[0]) - 2), text)


KINDS: dict[str, Replace] = {
    "uuid": _uuid,
    "hex64": _hex64,
    "decimal64": _decimal64,
    "serial": _serial,
    "cpuinfo": _cpuinfo,
    "addresses": _addresses,
}
"""Name of a kind, as manifests write it, to the function that replaces it."""


# Replaces identities in what libraries answered, by the same ones as in the files.
#
# PCI addresses, names and figures stay: they say what the machine is, and not whose.

_PERSONAL = frozenset(
    "user users username uid process processes command cmdline host hostname".split()
)
"""Words of keys in free data (`extra`) whose text may name a person, a program or a computer."""


def disguised(
    answers: Mapping[str, RecordedAnswer], anonymiser: Anonymiser, home: str | None
) -> dict[str, RecordedAnswer]:
    """Return the answers without identities; `home` is the user's own folder."""
    disguise = Disguise(anonymiser, home)
    return {name: disguise.value(answer) for name, answer in answers.items()}


class Disguise:
    """Replaces the text of JSON data by what its keys and its form say that it is."""

    def __init__(self, anonymiser: Anonymiser, home: str | None) -> None:
        self.anonymiser = anonymiser
        self._folders = [(f"{folder}/", "") for folder in _import_folders()]
        if home and home != "/":
            self._folders.append((home.rstrip("/"), "/home"))

    def value(self, value: Any) -> Any:
        """Return JSON data with every text replaced by the rule for it."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            pairs = ((key, self.named(key, item)) for key, item in value.items())
            return {self.text(key): item for key, item in pairs if item is not OMITTED}
        return value

    def named(self, key: str, value: Any) -> Any:
        """Return the value of a key, or `OMITTED` for what is nobody's business."""
        name = key.lower()
        if isinstance(value, str) and "serial" in name:
            return self.anonymiser.serial(value)
        if type(value) is int and "serial" in name:
            return self.anonymiser.number(value)
        words = name.replace("-", "_").split("_")
        if not isinstance(value, (int, float)) and not _PERSONAL.isdisjoint(words):
            return OMITTED
        return self.value(value)

    def text(self, text: str) -> str:
        """Return a text with its folders and identities replaced."""
        for folder, replacement in self._folders:
            text = text.replace(folder, replacement)
        plain = self.anonymiser.uuids(text)
        kind, colon, rest = text.partition(":")
        # Vulkan's and others' own UUIDs have neither prefix nor dashes.
        if kind == "uuid" and colon and plain == text:
            return f"uuid:{self.anonymiser.digits(rest)}"
        return plain


OMITTED: Any = object()


def _import_folders() -> Iterable[str]:
    """Return the folders that modules come from, the longest first: `stuck_at` names modules.

    They lie in somebody's home, or hold the name of a project.
    """
    folders = {path.rstrip("/") for path in (*sys.path, os.path.dirname(os.__file__)) if path}
    return sorted((path for path in folders if path.count("/") > 1), key=len, reverse=True)


# Leaves out of a report what says whose computer it is, for a page that somebody hands on.
#
# A recording replaces identities, so that a replay works. A page has no replay: it numbers UUIDs,
# and has nothing in place of a serial number, a host, a user or a command line.

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


if TYPE_CHECKING:
    Replace = Callable[[str, Anonymiser], str]
