"""What travels from child to parent: one line of JSON per frame, behind a secret of the run.

The child encodes with this module alone, bound before the plugin is imported: a plugin that
patches `json`, or yields objects that raise, harms nothing but its own values. The parent trusts
nothing that it decodes.
"""

from __future__ import annotations

from probe_core.fastpath import json_quoter
from probe_core.isolation import FRAME_LIMIT
from probe_core.wording import INVALID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["encode", "frame", "type_name"]

DEPTH_LIMIT = 16
"""Levels of lists and objects: a device of the documented fields has four."""

ITEM_LIMIT = 20_000
"""Values of one frame: a list or object that would make them more is left out as a whole. So
encoding ends also where lists hold each other many times."""

TEXT_LIMIT = 4_096
"""Characters of one text."""

_INTEGER_LIMIT = 1 << 63  # what most readers of JSON can hold
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


def _encode(value: Any, depth: int, budget: list[int]) -> str:
    # By exact type: a subclass could run its own code here, and misreport its length.
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind is int:
        fits = -_INTEGER_LIMIT < value < _INTEGER_LIMIT
        return str(value) if fits else _invalid("a number beyond 64 bits")
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        # repr of inf and nan is no JSON; `value - value` is 0.0 for finite numbers alone.
        return repr(value) if value - value == 0.0 else _invalid(f"{value} is not finite")
    if depth >= DEPTH_LIMIT:
        return _invalid(f"nested deeper than {DEPTH_LIMIT}")
    try:
        if kind is dict or kind is list or kind is tuple:
            return _container(value, depth + 1, budget)
        return _subclass(value, depth, budget)
    except BaseException as error:
        return _invalid(f"{type_name(error)} while reading a {type_name(value)}")


def _container(value: Any, depth: int, budget: list[int]) -> str:
    """Encode a dict, list or tuple, whose items are at this `depth`."""
    left = budget[0] - len(value)
    if left < 0:
        return _invalid(f"more than {ITEM_LIMIT} values")
    budget[0] = left
    if type(value) is not dict:
        return f"[{','.join([_encode(item, depth, budget) for item in value])}]"
    pairs = []
    for key, item in value.items():
        kind = type(item)  # most are a short text or a small number: without a call
        if kind is str and len(item) <= TEXT_LIMIT:
            text = _quote(item)
        elif kind is int and -_INTEGER_LIMIT < item < _INTEGER_LIMIT:
            text = str(item)
        else:
            text = _encode(item, depth, budget)
        pairs.append(_names[key] + text)
    return "{" + ",".join(pairs) + "}"


def _subclass(value: object, depth: int, budget: list[int]) -> str:
    """Encode the plain value of a subclass of what is JSON (enums, numpy's float64)."""
    if isinstance(value, dict):
        return _encode(dict(value), depth, budget)
    if isinstance(value, int):
        return _encode(int.__int__(value), depth, budget)
    if isinstance(value, float):
        return _encode(float.__float__(value), depth, budget)
    if isinstance(value, str):
        return _encode(str.__str__(value), depth, budget)
    return _invalid(f"a {type_name(value)} is not JSON")


def type_name(value: object) -> str:
    """Return the name of a value's type; a metaclass may make `type(value).__name__` raise."""
    name: str = _TYPE_NAME(type(value))
    return name


class _Names(dict[object, str]):
    """Keys as JSON with their colons: all devices of a prober have the same."""

    __slots__ = ()

    def __missing__(self, key: object) -> str:
        text = str.__str__(key) if isinstance(key, str) else f"({type_name(key)} key)"
        name = _text(text) + ":"
        if type(key) is str and len(self) < _MAX_NAMES:
            self[key] = name
        return name


_MAX_NAMES = 1_000
_names = _Names()


def _text(value: str) -> str:
    return _quote(value if len(value) <= TEXT_LIMIT else value[: TEXT_LIMIT - 1] + "…")


def _invalid(reason: str) -> str:
    return "{" + _quote(INVALID) + ":" + _quote(reason) + "}"
