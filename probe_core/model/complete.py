"""Check a document that somebody else wrote against the tables of fields, and fill what it lacks.

A report may be written by hand, or by an older or newer core. What is there must be of the type
that the published schema gives it, because readers look no further; what is in no table passes.
"""

from __future__ import annotations

from probe_core.model.field import Free, Items, Number, TableOf
from probe_core.model.report import plain_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from probe_core.model.field import Field, Value

_NOUNS = {
    "node": "its node",
    "node_memory": "its node's memory",
    "network": "a link of its node",
    "device": "a device",
    "memory": "a device's memory",
    "chip": "a device's chip",
    "peak": "a peak",
    "measurement": "a measurement",
    "link": "a link",
    "readiness": "a device's readiness",
    "step": "a step of readiness",
    "sight": "what a runtime shows",
    "outcome": "one of its outcomes",
    "decision": "one of its decisions",
    "finding": "one of its findings",
}
"""Shape of a part to what a sentence calls it."""


def complete(table: object, fields: Mapping[str, Field]) -> None:
    """Check a table and all tables in it, and give every field that a report has its stand-in.

    Nulls in tables and lists go: they say no more than nothing. Raises `ValueError` with the name
    of a field that has the wrong type, or that nothing can stand for.
    """
    _Completion().complete(table, fields, "the report")


class _Completion:
    """Completes one document. It remembers what was whole: its like is not looked at again."""

    def __init__(self) -> None:
        self._whole: set[object] = set()

    def complete(self, table: object, fields: Mapping[str, Field], noun: str) -> bool:
        """Complete a table, and return whether it was whole."""
        part = _table(table, noun)
        found = _look_through(part, fields, noun)
        is_whole = True
        for field in _kind_of(fields).always:
            if part.get(field.name) is None:
                is_whole = _fill(part, field) and is_whole
        for field in found.nulls:
            is_whole = _leave_out(part, field) and is_whole
        for field in found.ragged:
            part[field.name], is_whole = _without_nulls(part[field.name]), False
        for field, nested in found.parts:
            is_whole = self._complete_parts(nested, field) and is_whole
        return is_whole

    def _complete_parts(self, nested: Any, field: Field) -> bool:
        # Eight GPUs of one kind have the same peaks, of which each has more.
        data = plain_bytes(nested) if isinstance(nested, list) else None
        key = id(field), data
        if data is not None and key in self._whole:
            return True
        fields, noun, is_whole = field.fields or {}, _NOUNS[field.shape], True
        for item in _parts(nested, field):
            shape = _shape(item, fields)
            if shape is None or shape not in self._whole:
                if not self.complete(item, fields, noun):
                    is_whole = False
                elif shape is not None:
                    self._whole.add(shape)
        if is_whole and data is not None:
            self._whole.add(key)
        return is_whole


_FLAT = frozenset((str, int, float, bool, type(None)))


def _shape(table: Any, fields: Mapping[str, Field]) -> tuple[object, ...] | None:
    """Return what alone decides whether a flat table is whole: its names and types; else None."""
    if not isinstance(table, dict):
        return None
    types = [*map(type, table.values())]
    return (id(fields), *table, *types) if _FLAT.issuperset(types) else None


def check(
    table: object,
    fields: Mapping[str, Field],
    noun: str = "the report",
    done: set[object] | None = None,
) -> None:
    """Check a frozen table and all tables in it as `complete` does, and change nothing.

    A part that stands in several places is looked at once, and so are flat tables that are alike:
    `done` has the numbers of those seen, each with that of its field, and their shapes.
    """
    done = set() if done is None else done
    for field, nested in _look_through(_table(table, noun), fields, noun, done).parts:
        if _is_new(nested, field.fields, done):
            inner = field.fields or {}
            for item in _parts(nested, field):
                shape = _shape(item, inner)
                if shape is None or shape not in done:
                    check(item, inner, _NOUNS[field.shape], done)
                    if shape is not None:
                        done.add(shape)


def _is_new(part: object, kind: object, done: set[object]) -> bool:
    """Return whether a part was never looked at as this kind; it now was."""
    key = id(part), id(kind)
    if key in done:
        return False
    done.add(key)
    return True


def _table(table: object, noun: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ValueError(f"{noun} is not a table")
    return table


class _Found:
    """What one table holds that needs more than a look.

    `parts` are values that hold tables with sentences of their own, each with its field; `nulls`
    the fields that are there as null and need not be; `ragged` those of tables with nulls in them.
    """

    def __init__(self) -> None:
        self.parts: list[tuple[Field, Any]] = []
        self.nulls: list[Field] = []
        self.ragged: list[Field] = []


def _look_through(
    table: dict[str, Any],
    fields: Mapping[str, Field],
    noun: str,
    done: set[object] | None = None,
) -> _Found:
    """Look at each value of a table once, and return what of it needs more.

    Raises `ValueError` unless all that is there has the right type, and all that must be is.
    `done` is that of `check`.
    """
    found = _Found()
    for name, value in table.items():
        field = fields.get(name)
        if field is None:
            continue
        if value is None:
            if not field.always:
                found.nulls.append(field)
            continue
        if type(value) in field.value.scalars:
            continue
        if (done is None or _is_new(value, field, done)) and not _has_type(value, field):
            raise ValueError(f"{noun} has a {name!r} of the wrong type")
        if field.fields is not None and field.shape in _NOUNS:
            found.parts.append((field, value))
        if field.value.keyed and None in value.values():
            found.ragged.append(field)
    for field in _kind_of(fields).required:
        if table.get(field.name) is None:
            kind = "a number" if isinstance(field.value, Number) else "text"
            raise ValueError(f"{noun} has no {field.name!r} that is {kind}")
    return found


class _Kind:
    """What all tables with the same fields have in common.

    `always` are the fields that every report has, `required` those that nothing can stand for.
    """

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = fields  # kept, so that its number stays its own
        self.always = tuple(field for field in fields.values() if field.always)
        self.required = tuple(field for field in fields.values() if field.required)


_KINDS: dict[int, _Kind] = {}
"""By the number (`id`) of the table of fields."""


def _kind_of(fields: Mapping[str, Field]) -> _Kind:
    """Return what a table of fields says of its tables; kept, because each of them asks for it."""
    kind = _KINDS.get(id(fields))
    if kind is None:
        kind = _KINDS[id(fields)] = _Kind(fields)
    return kind


def _without_nulls(table: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in table.items() if item is not None}


def _has_type(value: object, field: Field) -> bool:
    kind = field.value
    if field.shape in _NOUNS and isinstance(kind, Items):
        # Looked at part by part, for a sentence that names the part.
        return isinstance(value, (list, tuple))
    if isinstance(value, dict) and isinstance(kind, TableOf) and None in value.values():
        value = _without_nulls(value)
    return holds(kind, value) and (field.fields is None or _has_types(value, field))


def holds(kind: Value, value: object) -> bool:
    """Return whether a document's value has the JSON type that the schema gives its kind."""
    if isinstance(kind, TableOf):
        return isinstance(value, dict) and _all_hold(kind.value, value.values())
    if isinstance(kind, Items):
        return isinstance(value, (list, tuple)) and _all_hold(kind.item, value)
    if isinstance(kind, Free):  # all that a JSON reader returns is JSON
        return isinstance(value, dict) or not kind.single
    is_number = not isinstance(value, bool)  # for Python a flag is one
    return isinstance(value, (*kind.scalars,)) and (is_number or bool in kind.scalars)


def _all_hold(kind: Value, items: Collection[object]) -> bool:
    return kind.scalars.issuperset(map(type, items)) or all(holds(kind, item) for item in items)


def _has_types(value: object, field: Field) -> bool:
    """Return whether a small table that no sentence names, such as `power`, has the right types."""
    if not field.single or field.shape in _NOUNS or not isinstance(value, dict):
        return True  # a part is looked at with its own sentence
    assert field.fields is not None
    items = ((item, field.fields.get(name)) for name, item in value.items() if item is not None)
    return all(
        nested is None or type(item) in nested.value.scalars or _has_type(item, nested)
        for item, nested in items
    )


def _fill(part: dict[str, Any], field: Field) -> bool:
    """Give a field that every report has its stand-in, and return whether it had it."""
    value = field.absent()
    had = value is None and field.name in part
    part[field.name] = value
    return had


def _leave_out(part: dict[str, Any], field: Field) -> bool:
    """Take a null out that readers would go through, and return whether it could stay."""
    if isinstance(field.empty, list):
        del part[field.name]
        return False
    return True


def _parts(value: Any, field: Field) -> list[object]:
    """Return the tables that a field's value holds."""
    if field.single:
        return [value]
    if isinstance(value, dict):
        return [item for item in value.values() if item is not None]
    return [*value]
