"""Reads one TOML file within bounds, so that neither a huge nor a broken one can hurt anybody."""

import os
import stat
import tomllib

from probe_chipdb.entry.problem import Problem
from probe_chipdb.entry.spec import MAX_DEPTH, depth

MAX_BYTES = 4 * 2**20
"""Bytes of one chip file: 97 times the largest of ours."""

MAX_CHIPS = 20_000
"""Chips of one package: eight times ours. The lookup is measured up to that number."""

MAX_DOTS = 100
"""Dots in one line: tomllib takes memory by the square of a key's parts, 24 GB for 100,000."""


class _Refused(Exception):
    """A file that is not read: the fault, and the fix."""


def read(path: str, label: str = "") -> tuple[dict[str, object], list[Problem]]:
    """The file's tables, or nothing and the reason why. Raises nothing.

    label: how problems name the file; its path when empty.
    """
    try:
        return _tables(_bytes(path)), []
    except _Refused as refusal:
        fault, fix = refusal.args
        return {}, [Problem(label or path, "", "", fault, fix)]


def _bytes(path: str) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would block whoever opens it
            raise _Refused("is no regular file", "write the chips to a file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            # One byte more than allowed shows a file that grows while it is read.
            data = file.read(MAX_BYTES + 1) if size <= MAX_BYTES else b""
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise _Refused(f"cannot be read: {reason}", "check the path and its rights") from None
    if max(size, len(data)) > MAX_BYTES:
        raise _Refused(f"is larger than {MAX_BYTES} bytes", "split it into families")
    return data


def _tables(data: bytes) -> dict[str, object]:
    tables = _parsed(data)
    if depth(tables, MAX_DEPTH + 1) > MAX_DEPTH:
        raise _Refused(f"nests deeper than {MAX_DEPTH}", "flatten it")
    if _has_huge_number(tables):
        raise _Refused("has a whole number of more than 64 bits", "TOML knows none of those")
    chips = tables.get("chip")
    if isinstance(chips, list) and len(chips) > MAX_CHIPS:
        raise _Refused(f"has {len(chips)} chips", f"write at most {MAX_CHIPS} a file")
    return tables


def _parsed(data: bytes) -> dict[str, object]:
    try:
        text = data.decode("utf-8")
        if any(line.count(".") > MAX_DOTS for line in text.split("\n")):
            raise _Refused(f"has a line with more than {MAX_DOTS} dots", "write shorter keys")
        return tomllib.loads(text)
    # ValueError beside TOMLDecodeError: not UTF-8, or a number of thousands of digits
    except (ValueError, RecursionError) as error:
        fault = str(error) or "nested too deeply"
        raise _Refused(f"is no TOML: {fault}", "correct that line") from None


def _has_huge_number(value: object) -> bool:
    """Whether a whole number is beyond what TOML allows; Python cannot even print some."""
    if isinstance(value, int):
        return not -(2**63) <= value < 2**63
    if not isinstance(value, dict | list):
        return False
    return any(map(_has_huge_number, value.values() if isinstance(value, dict) else value))
