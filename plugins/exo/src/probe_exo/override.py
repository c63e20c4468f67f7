"""`OVERRIDE_MEMORY_MB`, exo's own way for a person to say how much memory a node may give."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["VARIABLE", "overridden"]

VARIABLE = "OVERRIDE_MEMORY_MB"
MIB = 1 << 20
_MOST = 1 << 40


def overridden(environ: Mapping[str, str]) -> tuple[int | None, str | None]:
    """Return (bytes, why) when the variable is set; (None, why not) when it says no amount.

    Read at every call, so that it acts at once. (None, None) when it is unset or empty.
    """
    said = environ.get(VARIABLE, "").strip()
    if not said:
        return None, None
    plain = said.isascii() and said.isdecimal() and len(said) <= 20
    if not plain or not 0 < int(said) < _MOST:
        return None, f"{VARIABLE}={said[:40]!r} is ignored: it is no number of MiB"
    return int(said) * MIB, f"{VARIABLE}={said}"
