"""Answers that a client takes: bounded in size, in pages, and of text that shows what it is.

Pure functions over what `probe … --json` printed. Names of devices and lines of logs come from the
machine, and whoever can write those could write anything: control characters, marks of direction
and characters without width are taken out of every text.
"""

from __future__ import annotations

import json
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LIMIT = 20_000
"""Bytes of an answer as JSON: a common client cuts answers at 25,000 tokens."""

MAX_TEXT = 600
"""Characters of one text."""

_SHORTER = (64, 16, 4, 1)
"""How many entries of each list are kept, one after another until the answer fits."""

_MAX_DEPTH = 32


def clean(value: Any, depth: int = 0) -> Any:
    """Return a JSON value whose texts hold nothing that a reader cannot see."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, str):
        shown = "".join(c if c == "\n" or unicodedata.category(c)[0] != "C" else " " for c in value)
        return shown if len(shown) <= MAX_TEXT else f"{shown[: MAX_TEXT - 1]}…"
    if isinstance(value, list):
        return [clean(entry, depth + 1) for entry in value]
    if isinstance(value, dict):
        return {clean(str(name)): clean(entry, depth + 1) for name, entry in value.items()}
    return value


def bounded(document: Mapping[str, Any], field: str, cursor: int) -> dict[str, Any]:
    """Return a page of a document: its list `field` from `cursor` on, as much as fits.

    `total` is the length of the list, `cursor` where the next page begins (None: this is the last
    one), `truncated` whether anything is left out: of the list, or of others, which `shortened`
    names.
    """
    own = clean(dict(document))
    entries = own.get(field)
    entries = entries if isinstance(entries, list) else []
    start = min(max(0, cursor), len(entries))
    head, shortened = _shortened({name: value for name, value in own.items() if name != field})
    page: list[Any] = []
    room = LIMIT - _size(head) - 400
    for entry in entries[start:]:
        size = _size(entry) + 2
        if size > room and not page:
            entry, cut = _shortened(entry, room - 2)
            shortened = [*shortened, *(name for name in cut if name not in shortened)]
            size = _size(entry) + 2
        if size > room:
            break
        page.append(entry)
        room -= size
    end = start + len(page)
    following = end if end < len(entries) and page else None
    return {
        **head,
        field: page,
        "total": len(entries),
        "cursor": following,
        "truncated": following is not None or bool(shortened),
        "shortened": shortened,
    }


def _shortened(value: Any, room: int = LIMIT // 2) -> tuple[Any, list[str]]:
    """Return a value of at most `room` bytes, and the names of what was cut."""
    if _size(value) <= room:
        return value, []
    names: dict[str, None] = {}
    result = value
    for most in _SHORTER:
        result = _cut(value, most, names)
        if _size(result) <= room:
            return result, list(names)[:32]
    if isinstance(result, dict):
        sizes = {name: _size(entry) for name, entry in result.items()}
        left = _size(result)
        for name in sorted(sizes, key=lambda name: -sizes[name]):
            result[name] = None
            names[name] = None
            left -= sizes[name] - len("null")
            if left <= room:
                return result, list(names)[:32]
    return None, list(names)[:32]


def _cut(value: Any, most: int, names: dict[str, None], name: str = "") -> Any:
    if isinstance(value, list):
        if len(value) > most:
            names[name] = None
        return [_cut(entry, most, names, name) for entry in value[:most]]
    if isinstance(value, dict):
        return {key: _cut(entry, most, names, key) for key, entry in value.items()}
    return value


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


# What of a device stands in a list of all.

_BRIEF = ("id", "kind", "vendor", "name", "parent", "power_state", "processes")


def brief_device(device: Mapping[str, Any]) -> dict[str, Any]:
    """Return what tells devices apart, and whether each can be used."""
    memory, readiness = device.get("memory") or {}, device.get("readiness") or {}
    return {
        **{name: device.get(name) for name in _BRIEF},
        "chip": (device.get("chip") or {}).get("id"),
        "memory": {name: memory.get(name) for name in ("kind", "total", "free", "usable")},
        "driver": device.get("driver"),
        "readiness": {name: readiness.get(name) for name in ("state", "broken")},
    }
