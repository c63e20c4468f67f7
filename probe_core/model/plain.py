"""From plain JSON data to frozen values and back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

__all__ = ["EMPTY", "build", "freeze", "thaw"]

EMPTY: Mapping[str, Any] = MappingProxyType({})
"""The empty table, as a default."""


def freeze(value: Any) -> Any:
    """Return plain JSON data with read-only mappings and tuples instead of lists."""
    if isinstance(value, dict):
        return MappingProxyType({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """Return frozen data as plain JSON data that may be changed."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


def build(cls: type[Any], data: Any) -> Any:
    """Make `cls` of the keys of `data` that it has; what a newer core added is left out."""
    table = data if isinstance(data, Mapping) else {}
    names = [field.name for field in attrs.fields(cls)]
    return cls(**{name: freeze(table[name]) for name in names if name in table})
