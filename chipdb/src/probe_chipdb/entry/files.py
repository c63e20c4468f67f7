"""Reads one TOML file within bounds, so that neither a huge nor a broken one can hurt anybody."""

import os
import stat
import tomllib

from probe_chipdb.entry.problem import Problem
from probe_chipdb.entry.spec import MAX_DEPTH, depth

MAX_BYTES = 4 * 2**20
MAX_CHIPS = 20_000


def read(path: str, shown: str = "") -> tuple[dict[str, object], list[Problem]]:
    """The file's tables, or nothing and the reason why. Raises nothing."""
    shown = shown or path
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would block whoever opens it
            return _no(shown, "is no regular file", "write the chips to a file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(MAX_BYTES + 1) if size <= MAX_BYTES else b""
    except OSError as error:
        return _no(
            shown, f"cannot be read: {error.strerror or error}", "check the path and its rights"
        )
    if max(size, len(data)) > MAX_BYTES:
        return _no(shown, f"is larger than {MAX_BYTES} bytes", "split it into families")
    try:
        tables = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        return _no(shown, f"is no TOML: {str(error) or 'nested too deeply'}", "mend that line")
    if depth(tables, MAX_DEPTH + 1) > MAX_DEPTH:
        return _no(shown, f"nests deeper than {MAX_DEPTH}", "flatten it")
    chips = tables.get("chip")
    if isinstance(chips, list) and len(chips) > MAX_CHIPS:
        return _no(shown, f"has {len(chips)} chips", f"write at most {MAX_CHIPS} a file")
    return tables, []


def _no(file: str, what: str, fix: str) -> tuple[dict[str, object], list[Problem]]:
    return {}, [Problem(file, "", "", what, fix)]
