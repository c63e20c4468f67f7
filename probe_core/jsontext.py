"""JSON without the module json, which takes longer to import than a probe takes to merge.

json brings re, enum and functools for regular expressions that its C code does not need: 5 ms of
the 20 that `probe --json` takes beyond a bare interpreter. Whatever the C code refuses, or lacks
in a release, is handed to json, which also gives the sentence.
"""

from __future__ import annotations

from os import urandom

from probe_core.fastpath import json_encoder, json_quoter, json_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

    Scan = Callable[[str, int], tuple[Any, int]]

__all__ = ["parse", "parse_bounded", "parse_strict", "write", "write_lines", "write_shared"]

# Not each exception: one that a handler of the host's signals raises just then is the host's.
# Up to 3.12 the scanner sets none while json.decoder is not imported, which is a SystemError.
_REFUSED = (
    AttributeError,
    ImportError,
    RecursionError,
    StopIteration,
    SystemError,
    TypeError,
    ValueError,
)

_BLANKS = " \t\r\n"
"""What may stand around a JSON text."""


def parse(text: str | bytes, numbers: str = "json") -> Any:
    """Return what `json.loads` returns; raises `ValueError` or `RecursionError` as it does.

    `numbers` names what makes them, see `_HOOKS`.
    """
    if numbers not in _scanners:
        _scanners[numbers] = json_scanner(**_HOOKS[numbers])
    scan = _scanners[numbers]
    if scan is not None:
        try:
            plain = text if isinstance(text, str) else text.decode()
            if plain[:1] in _BLANKS:
                plain = plain.lstrip(_BLANKS)
            value, end = scan(plain, 0)
            # The end alone is looked at: to strip a report of its last newline would copy it.
            if not plain[end:].strip(_BLANKS):
                return value
        except _REFUSED:
            pass
    import json

    return json.loads(text, **_HOOKS[numbers])


def parse_strict(text: str | bytes) -> Any:
    """Return the same of a text that is JSON: NaN and Infinity are a `ValueError`, too."""
    return parse(text, "strict")


def parse_bounded(text: str | bytes) -> Any:
    """Return the same where all readers hold each number: one beyond 64 bits is an error, too."""
    return parse(text, "bounded")


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _whole(text: str) -> int:
    if len(text) < 19:
        return int(text)
    if len(text) > 20:  # with its sign; Python's own refusal of thousands of digits is its advice
        _beyond()
    number = int(text)
    return number if -(1 << 63) < number < 1 << 63 else _beyond()


def _real(text: str) -> float:
    number = float(text)
    # A float is slow to compare with a whole number of that size.
    return number if -_BOUND < number < _BOUND else _beyond()


def _beyond() -> NoReturn:
    raise ValueError("it has a number beyond 64 bits")


_BOUND = float(1 << 63)

_HOOKS: Mapping[str, Mapping[str, Any]] = {
    "json": {"parse_constant": float},
    "strict": {"parse_constant": _no_number},
    "bounded": {
        "parse_constant": _no_number,
        "parse_int": _whole,
        "parse_float": _real,
    },
}
"""What makes numbers, as arguments of `json.loads`."""

_scanners: dict[str, Scan | None] = {}
"""Each scanner once it is made, by the name of its hooks: a prober's devices share one."""


def write(data: object) -> str:
    """Return what `json.dumps` returns; raises `TypeError` or `ValueError` as it does."""
    try:
        return "".join(json_encoder(json_quoter())(data, 0))
    except _REFUSED:
        pass
    import json

    return json.dumps(data)


def write_shared(document: Mapping[str, Any], tables: str, *fields: str) -> str:
    """Return what `write` returns of a document; `fields` that `tables` share are written once.

    A field is a list of tables, and one that holds the very same ones as another has its text; or
    a table of texts, and an equal one has its. Eight equal GPUs have the same peaks and sources,
    which are two thirds of their report's text.
    """
    marks: dict[tuple[object, ...], str] = {}
    texts: dict[str, str] = {}
    rows = []
    for table in document[tables]:
        row = {**table}
        for field in fields:
            value = table[field]
            shared = (field, *(map(id, value) if isinstance(value, list) else value.items()))
            if shared not in marks:
                marks[shared] = mark = urandom(16).hex()  # no text of a report can hold it
                texts[mark] = write(value)
            row[field] = marks[shared]
        rows.append(row)
    text = write({**document, tables: rows})
    for mark, written in texts.items():
        text = text.replace(f'"{mark}"', written)
    return text


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
