"""Replaces what identifies one piece of hardware, so that a recording can be shared.

A UUID is a serial number in all but name. But visibility variables name devices by it, often by
its beginning: so each digit is replaced by one that depends on the digits before it. Equal
beginnings stay equal, different UUIDs stay different, and the secret that would recover them is
kept nowhere.
"""

from __future__ import annotations

import os
import re

from probe_core.model.ids import UUID_PREFIXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib

__all__ = ["Anonymiser"]

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
