"""Read foreign JSON as typed plain data: what is no table is an empty one, and so with lists."""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, cast
else:

    def cast(kind: str, value: object) -> object:
        """Return the value; typing itself takes 1.5 ms to import."""
        return value


__all__ = ["no_reasons", "rows", "table"]


def table(value: object) -> Mapping[str, Any]:
    """Return a mapping, or an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def rows(value: object) -> list[Mapping[str, Any]]:
    """Return the tables in a list that hold anything; nothing when it is no list."""
    items: list[Any] = [*cast("list[Any]", value)] if isinstance(value, (list, tuple)) else []
    return [row for row in map(table, items) if row]


def no_reasons() -> Mapping[str, str]:
    """Return the default of every field named `reasons`."""
    return {}
