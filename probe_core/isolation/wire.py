"""What travels from child to parent: one line of JSON per frame, behind a secret of the run.

The child encodes with this module alone, bound before the plugin is imported: a plugin that
patches `json`, or yields objects that raise, harms nothing but its own values. The parent trusts
nothing that it decodes.
"""

from __future__ import annotations

from probe_core.fastpath import json_quoter
from probe_core.isolation import FRAME_LIMIT
from probe_core.wording import INVALID

__all__ = ["encode", "frame", "type_name"]

DEPTH_LIMIT = 16
"""Levels of lists and objects: a device of the documented fields has four."""

ITEM_LIMIT = 20_000
"""Values of one frame, so that encoding ends also where a mapping is endless."""

TEXT_LIMIT = 4_096
"""Characters of one text."""

_INTEGER_LIMIT = 1 << 63  # what most readers of JSON can hold
_MAX_NAMES = 1_000
_names: dict[str, str] = {}
_quote = json_quoter()
_TYPE_NAME = type.__dict__["__name__"].__get__


def frame(kind: str, fields: dict[str, object]) -> str:
    """Return a frame's text: its kind and fields, or of too large a frame its size alone."""
    text = encode({"kind": kind, **fields})
    if len(text) > FRAME_LIMIT:
        text = encode({"kind": "oversize", "of": kind, "bytes": len(text)})
    return text


def encode(value: object) -> str:
    """Return `value` as JSON in ASCII. Never raises: what is not JSON becomes an INVALID mark."""
    budget = [ITEM_LIMIT]  # in a list, so that all levels count down the same number
    return _encode(value, 0, budget)


def _encode(value: object, depth: int, budget: list[int]) -> str:
    budget[0] -= 1
    if budget[0] < 0:
        return _invalid(f"more than {ITEM_LIMIT} values")
    kind = type(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is str:
        return _text(value)  # type: ignore[arg-type]
    if kind is int:
        return _whole(value)  # type: ignore[arg-type]
    if kind is float:
        return _real(value)  # type: ignore[arg-type]
    if depth >= DEPTH_LIMIT:
        return _invalid(f"nested deeper than {DEPTH_LIMIT}")
    return _container(value, depth, budget)


def _container(value: object, depth: int, budget: list[int]) -> str:
    try:
        # By exact type: a subclass could run its own code here, and misreport its length.
        if type(value) is dict:
            return _mapping(value, depth, budget)
        if type(value) in (list, tuple):
            return _sequence(value, depth, budget)  # type: ignore[arg-type]
        if isinstance(value, dict):
            return _mapping(dict(value), depth, budget)
        if isinstance(value, (int, float, str)):
            return _encode(_plain(value), depth, budget)
    except BaseException as error:
        return _invalid(f"{type_name(error)} while reading a {type_name(value)}")
    return _invalid(f"a {type_name(value)} is not JSON")


def type_name(value: object) -> str:
    """Return the name of a value's type; a metaclass may make `type(value).__name__` raise."""
    name: str = _TYPE_NAME(type(value))
    return name


def _plain(value: int | float | str) -> object:
    """Return the plain value of a subclass of a number or text (enums, numpy's float64)."""
    if isinstance(value, int):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, float) else str.__str__(value)


def _sequence(value: list[object] | tuple[object, ...], depth: int, budget: list[int]) -> str:
    items = []
    for item in value:
        items.append(_encode(item, depth + 1, budget))
        if budget[0] < 0:
            break
    return f"[{','.join(items)}]"


def _mapping(value: dict[object, object], depth: int, budget: list[int]) -> str:
    pairs = []
    for key, item in value.items():
        name = _names.get(key) if type(key) is str else None
        if name is None:
            name = _name(key)
        if type(item) is str and len(item) <= TEXT_LIMIT and budget[0] > 0:
            budget[0] -= 1  # as `_encode` does: most values are short texts
            pairs.append(name + _quote(item))
            continue
        pairs.append(name + _encode(item, depth + 1, budget))
        if budget[0] < 0:
            break
    return "{" + ",".join(pairs) + "}"


def _name(key: object) -> str:
    """Return a key with its colon, which all devices of a prober have; some are kept."""
    if type(key) is not str:
        return _text(f"({type_name(key)} key)") + ":"
    name = _text(key) + ":"
    if len(_names) < _MAX_NAMES:
        _names[key] = name
    return name


def _text(value: str) -> str:
    return _quote(value if len(value) <= TEXT_LIMIT else value[: TEXT_LIMIT - 1] + "…")


def _whole(value: int) -> str:
    return (
        str(value)
        if -_INTEGER_LIMIT < value < _INTEGER_LIMIT
        else _invalid("a number beyond 64 bits")
    )


def _real(value: float) -> str:
    # repr of inf and nan is no JSON; `value - value` is 0.0 for finite numbers alone.
    return repr(value) if value - value == 0.0 else _invalid(f"{value} is not finite")


def _invalid(reason: str) -> str:
    return "{" + _quote(INVALID) + ":" + _quote(reason) + "}"
