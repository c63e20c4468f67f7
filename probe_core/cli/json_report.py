"""The JSON of a report with several devices, written in two thirds of the time.

Equal GPUs repeat nearly all texts, which are escaped once here, and three parts, which are most of
what is written of each and are encoded once. The text is the one that `jsontext.write` returns.
"""

from __future__ import annotations

from marshal import dumps

from probe_core.fastpath import json_quoter
from probe_core.jsontext import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["write_report"]

_REPEATED = frozenset({"links", "peaks", "sources"})
"""Parts of a device that equal ones share: GPUs behind the same switches have the same links."""

_MARK = "\x00part"
"""Stands for such a part in the text until it is inserted."""


def write_report(report: Any) -> str:
    """Return the document of a report as JSON; raises `TypeError` or `ValueError` as `write`."""
    quote = json_quoter()
    escape = _Escaped(quote).__getitem__
    parts: list[Any] = []
    devices = [_marked(device, parts) for device in report["devices"]]
    text = write({**report, "devices": devices}, escape)
    first, *others = text.split(quote(_MARK))
    texts = _texts(parts, escape)
    if texts is None or len(others) != len(parts):  # a text of the report holds the mark itself
        return write(report, escape)
    return first + "".join([part + rest for part, rest in zip(texts, others, strict=True)])


def _marked(device: dict[str, Any], parts: list[Any]) -> dict[str, Any]:
    """Return a device with marks for its repeated parts, which are added to `parts`."""
    marked = device.copy()
    for name, value in device.items():
        if name in _REPEATED:
            marked[name] = _MARK
            parts.append(value)
    return marked


def _texts(values: Sequence[Any], escape: Callable[[str], str]) -> list[str] | None:
    """Return each value as JSON, equal ones encoded once; None where one is not plain data."""
    try:
        # Unlike equality it tells 1, 1.0 and True apart, and one order of keys from another.
        # Its version 4 writes a text that is shared once, in less than half of the time.
        forms = [dumps(value, 4) for value in values]
    except ValueError:
        return None
    distinct = dict(zip(forms, values, strict=True))
    texts = {form: write(value, escape) for form, value in distinct.items()}
    return [texts[form] for form in forms]


class _Escaped(dict[str, str]):
    """Texts as JSON has them, each escaped when it is first asked for."""

    __slots__ = ("_escape",)

    def __init__(self, escape: Callable[[str], str]) -> None:
        self._escape = escape

    def __missing__(self, text: str) -> str:
        self[text] = escaped = self._escape(text)
        return escaped
