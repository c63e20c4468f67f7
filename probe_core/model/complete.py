"""Check a document that somebody else wrote against the tables of fields, and fill what it lacks.

A report may be written by hand, or by an older or newer core. What is there must be of the type
that the published schema gives it, because readers look no further; what is in no table passes.
"""

from __future__ import annotations

from probe_core.model.field import Items, Number, TableOf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_core.model.field import Field

__all__ = ["check", "complete"]

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


def complete(table: object, fields: Mapping[str, Field], noun: str = "the report") -> None:
    """Check a table and all tables in it, and give every field that a report has its stand-in.

    Nulls in tables and lists go: they say no more than nothing. Raises `ValueError` with the name
    of a field that has the wrong type, or that nothing can stand for.
    """
    for name, field, part in _checked(table, fields, noun):
        value = part.get(name)
        if value is None:
            _fill(part, field)
        elif isinstance(field.value, TableOf):
            part[name] = {key: item for key, item in value.items() if item is not None}
    for part_noun, nested, part_fields in _parts(table, fields):
        complete(nested, part_fields, part_noun)


def check(table: object, fields: Mapping[str, Field], noun: str = "the report") -> None:
    """Check a table and all tables in it as `complete` does, and change nothing."""
    for _ in _checked(table, fields, noun):
        pass
    for part_noun, part, part_fields in _parts(table, fields):
        check(part, part_fields, part_noun)


def _checked(
    table: object, fields: Mapping[str, Field], noun: str
) -> Iterator[tuple[str, Field, dict[str, Any]]]:
    """Yield (name, field, table) of each field once all that is there has the right type."""
    if not isinstance(table, dict):
        raise ValueError(f"{noun} is not a table")
    for name, field in fields.items():
        value = table.get(name)
        if isinstance(value, dict) and isinstance(field.value, TableOf):
            value = {key: item for key, item in value.items() if item is not None}
        if value is not None and not _has_type(value, field):
            raise ValueError(f"{noun} has a {name!r} of the wrong type")
    for name, field in fields.items():
        if table.get(name) is None and field.required:
            kind = "a number" if isinstance(field.value, Number) else "text"
            raise ValueError(f"{noun} has no {name!r} that is {kind}")
        yield name, field, table


def _has_type(value: object, field: Field) -> bool:
    # What is in a list of parts is looked at part by part, for a sentence that names the part.
    is_list_of_parts = field.shape in _NOUNS and isinstance(field.value, Items)
    if is_list_of_parts:
        return isinstance(value, list)
    return field.value.holds(value) and _has_types(value, field)


def _has_types(value: object, field: Field) -> bool:
    """Return whether a small table that no sentence names, such as `power`, has the right types."""
    if not field.single or field.fields is None or not isinstance(value, dict):
        return True
    if field.shape in _NOUNS:
        return True  # looked at with its own sentence
    items = ((value.get(name), nested) for name, nested in field.fields.items())
    return all(item is None or _has_type(item, nested) for item, nested in items)


def _fill(part: dict[str, Any], field: Field) -> None:
    if field.always:
        part[field.name] = field.absent()
    elif field.name in part and isinstance(field.empty, list):
        del part[field.name]  # readers go through lists


def _parts(
    table: object, fields: Mapping[str, Field]
) -> Iterator[tuple[str, object, Mapping[str, Field]]]:
    """Yield (noun, table, its fields) of every table that a table's fields hold."""
    assert isinstance(table, dict)
    for name, field in fields.items():
        value = table.get(name)
        if field.fields is None or field.shape not in _NOUNS or value is None:
            continue
        noun = _NOUNS[field.shape]
        if field.single:
            parts = [value]
        else:
            items = value.values() if isinstance(value, dict) else value
            parts = [item for item in items if item is not None or isinstance(value, list)]
        for part in parts:
            yield noun, part, field.fields
