"""JSON without the module json, which takes longer to import than a probe takes to merge.

json brings re, enum and functools for regular expressions that its C code does not need: 5 ms of
the 20 that `probe --json` takes beyond a bare interpreter. The C code is private to CPython, so
whatever it refuses, or lacks in another release, is handed to json, which also gives the sentence.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["parse", "write", "write_lines"]


class _Decoder:
    """What the C scanner asks of a decoder: the defaults of `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    scan: Callable[[str, int], tuple[Any, int]] | None = None
    """The scanner, once it is made: each device that a prober reports is read by it."""


def _made_scanner() -> Callable[[str, int], tuple[Any, int]]:
    from _json import make_scanner

    decoder: Any = _Decoder
    _Decoder.scan = make_scanner(decoder)
    return _Decoder.scan


def parse(text: str | bytes) -> Any:
    """Return what `json.loads` returns; raises `ValueError` or `RecursionError` as it does."""
    try:
        scan = _Decoder.scan or _made_scanner()
        stripped = (text if isinstance(text, str) else text.decode()).strip(" \t\r\n")
        value, end = scan(stripped, 0)
        if end == len(stripped):
            return value
    # Up to 3.12 the scanner sets no exception while json.decoder is not imported: a SystemError.
    except (ImportError, StopIteration, SystemError, ValueError):
        pass
    import json

    return json.loads(text)


def write(data: object, escape: Callable[[str], str] | None = None) -> str:
    """Return what `json.dumps` returns; raises `TypeError` or `ValueError` as it does.

    `escape` returns a text as JSON has it, where something faster than JSON's own is at hand.
    """
    try:
        from _json import encode_basestring_ascii, make_encoder

        # Without a memory of lists and tables: one that holds itself ends as too deep.
        arguments = (escape or encode_basestring_ascii, None, ": ", ", ", False, False, True)
        return "".join(make_encoder(None, _refuse, *arguments)(data, 0))
    except (ImportError, RecursionError, TypeError, ValueError):
        pass
    import json

    return json.dumps(data)


def write_lines(table: Mapping[str, object]) -> str:
    """Return a table as JSON with a line for each key, and for each table in a list; in ASCII.

    For files that people read and compare; the C encoder that `write` uses knows no indentation.
    """
    lines = []
    for key, value in table.items():
        text = write(value)
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            text = "[\n  " + ",\n  ".join(map(write, value)) + "\n ]"
        lines.append(f" {write(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _refuse(value: object) -> object:
    raise TypeError(f"a {type(value).__name__} is not JSON")
