"""Replaces what identifies one piece of hardware, so that a recording can be shared.

A UUID is a serial number in all but name. But masks name devices by it, often by its beginning:
so each digit is replaced by one that depends on the digits before it. Equal beginnings stay equal,
different UUIDs stay different, and without the secret, which nobody keeps, none can be told.
"""

from __future__ import annotations

import hashlib
import os
import re

__all__ = ["Disguise"]

_UUID = re.compile(r"(?<=GPU-)[0-9A-Fa-f-]+|(?<=MIG-)(?!GPU-)[0-9A-Fa-f-]+")


class Disguise:
    """One recording's way to replace identities, the same wherever they stand."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = os.urandom(16) if secret is None else secret

    def uuids(self, text: str) -> str:
        """Return a text with the UUIDs of GPUs and MIG instances replaced, whole or cut short."""
        return _UUID.sub(lambda match: self.digits(match[0]), text)

    def digits(self, text: str) -> str:
        """Return hexadecimal digits replaced one by one; anything else stays."""
        made, before = "", ""
        for char in text:
            if char.lower() in "0123456789abcdef":
                digit = f"{int(char, 16) ^ self._nibble(before):x}"
                before += char.lower()
                char = digit.upper() if char.isupper() else digit
            made += char
        return made

    def number(self, value: int) -> int:
        """Return a 64-bit number replaced as its 16 digits are; 0 means unknown, and stays."""
        return int(self.digits(f"{value:016x}"), 16) if 0 < value < 1 << 64 else value

    def _nibble(self, before: str) -> int:
        return hashlib.blake2b(before.encode(), key=self._secret, digest_size=1).digest()[0] & 15
