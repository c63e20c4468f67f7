"""Read-only plain data: what the views hold, and what can be pickled, copied and hashed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Dict = dict[str, Any]
else:
    Dict = dict

__all__ = ["EMPTY", "FrozenTable", "freeze", "thaw"]


class FrozenTable(Dict):
    """A table that cannot be changed. Equal to a dict with the same items, and hashable.

    A dict, not a `types.MappingProxyType`: that one can neither be pickled nor deep-copied, so a
    report could not be sent to another process (multiprocessing, Ray).
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return dict.__repr__(self)

    def __reduce__(self) -> tuple[type[FrozenTable], tuple[dict[str, Any]]]:
        return FrozenTable, (dict(self),)

    def __copy__(self) -> FrozenTable:
        return self

    def __deepcopy__(self, memo: object) -> FrozenTable:
        return self

    def copy(self) -> FrozenTable:
        """Return itself: nothing in it can change."""
        return self

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a report cannot be changed; to_json() gives a document that can")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


EMPTY = FrozenTable()
"""The empty table, as a default."""


def freeze(value: Any) -> Any:
    """Return plain JSON data with read-only tables, and tuples instead of lists."""
    if isinstance(value, FrozenTable):
        return value
    if isinstance(value, dict):
        return FrozenTable({name: freeze(item) for name, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """Return frozen data as plain JSON data that may be changed."""
    if isinstance(value, dict):
        return {name: thaw(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value
