"""`OVERRIDE_MEMORY_MB`, exo's own way for a person to say how much memory a node may give."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["VARIABLE", "overridden"]

VARIABLE = "OVERRIDE_MEMORY_MB"
MIB = 1 << 20
# MiB: an exbibyte. More is a slip of the keyboard, not a memory.
_MOST = 1 << 40


def overridden(environ: Mapping[str, str]) -> tuple[int | None, str | None]:
    """Return (bytes, why) when the variable is set; (None, why not) when it says no amount.

    Read at every call, so that it acts at once. (None, None) when it is unset or empty.
    """
    text = environ.get(VARIABLE, "").strip()
    if not text:
        return None, None
    plain = text.isascii() and text.isdecimal() and len(text) <= 20
    if not plain or not 0 < int(text) < _MOST:
        return None, f"{VARIABLE}={text[:40]!r} is ignored: it is no number of MiB"
    return int(text) * MIB, f"{VARIABLE}={text}"
