"""Reads one TOML file within bounds, so that neither a huge nor a broken one can hurt anybody."""

import os
import stat
import tomllib

from probe_chipdb.entry.problem import Problem
from probe_chipdb.entry.spec import MAX_DEPTH, depth

MAX_BYTES = 4 * 2**20
MAX_CHIPS = 20_000
MAX_DOTS = 100
"""Dots in one line: tomllib takes memory by the square of a key's parts, 24 GB for 100,000."""


def read(path: str, shown: str = "") -> tuple[dict[str, object], list[Problem]]:
    """The file's tables, or nothing and the reason why. Raises nothing."""
    shown = shown or path
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would block whoever opens it
            return _no(shown, "is no regular file", "write the chips to a file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(MAX_BYTES + 1) if size <= MAX_BYTES else b""
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        why = getattr(error, "strerror", None) or str(error)
        return _no(shown, f"cannot be read: {why}", "check the path and its rights")
    if max(size, len(data)) > MAX_BYTES:
        return _no(shown, f"is larger than {MAX_BYTES} bytes", "split it into families")
    try:
        text = data.decode("utf-8")
        if any(line.count(".") > MAX_DOTS for line in text.split("\n")):
            return _no(shown, f"has a line with more than {MAX_DOTS} dots", "write shorter keys")
        tables = tomllib.loads(text)
    # ValueError beside TOMLDecodeError: not UTF-8, or a number of thousands of digits
    except (ValueError, RecursionError) as error:
        return _no(shown, f"is no TOML: {str(error) or 'nested too deeply'}", "mend that line")
    if depth(tables, MAX_DEPTH + 1) > MAX_DEPTH:
        return _no(shown, f"nests deeper than {MAX_DEPTH}", "flatten it")
    if _has_huge(tables):
        return _no(shown, "has a whole number of more than 64 bits", "TOML knows none of those")
    chips = tables.get("chip")
    if isinstance(chips, list) and len(chips) > MAX_CHIPS:
        return _no(shown, f"has {len(chips)} chips", f"write at most {MAX_CHIPS} a file")
    return tables, []


def _has_huge(value: object) -> bool:
    """Tell whether a whole number is beyond what TOML allows; Python cannot even print some."""
    if isinstance(value, int):
        return not -(2**63) <= value < 2**63
    if not isinstance(value, dict | list):
        return False
    return any(map(_has_huge, value.values() if isinstance(value, dict) else value))


def _no(file: str, what: str, fix: str) -> tuple[dict[str, object], list[Problem]]:
    return {}, [Problem(file, "", "", what, fix)]
