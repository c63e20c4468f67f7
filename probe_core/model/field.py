"""One field of a part of the report: everything that any reader of it needs to know, once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from probe_core.model.document import Json
    from probe_core.model.values import Value

__all__ = ["FACTS", "FIRST", "LINKS", "PARTS", "TABLE", "UNION", "Field", "by_name", "filled"]

FIRST = "first"
"""Merge: the most believed prober's value; a different later one goes to `others`."""

TABLE = "table"
"""Merge: name by name, each as `FIRST`."""

UNION = "union"
"""Merge: all values of all probers, the most believed prober's first."""

LINKS = "links"
"""Merge: a later prober's links count for the kinds of link that no better prober reported."""

PARTS = "parts"
"""Merge: a later prober's parts count where no better prober reported that part."""

FACTS = "facts"
"""Merge: all facts of all probers, each marked with its prober, the most believed first."""


class Field:
    """One field.

    `name`: its key. `value`: what its value must be. `doc`: one sentence without a full stop.
    `unit`: of a number (``bytes``, ``MHz``). `merge`: one of the rules above. `volatile`: whether
    it changes between two looks, so that differing is no conflict. `since`: the version of the
    core that had it first. `reported`: whether probers report it; the core makes the others.
    `always`: whether a report has it even where nothing is known, as `empty` (None, a list or a
    table). `nullable`: whether null may stand for it. `fields`: the fields of a nested table.
    `shape`: the name of the nested part in the schema and in sentences. `required`: whether a
    document without it cannot be read, because nothing can stand for it. `added`: whether it came
    after the first form of the schema, so that older documents lack it. `internal`: whether the
    core uses it up, so that no report has it.
    """

    __slots__ = (
        "added",
        "always",
        "doc",
        "empty",
        "fields",
        "internal",
        "is_part",
        "is_table",
        "merge",
        "name",
        "nullable",
        "reported",
        "required",
        "shape",
        "since",
        "single",
        "unit",
        "value",
        "volatile",
    )

    def __init__(
        self,
        name: str,
        value: Value,
        doc: str,
        *,
        unit: str = "",
        merge: str = FIRST,
        volatile: bool = False,
        since: str = "0.9",
        reported: bool = True,
        always: bool = False,
        nullable: bool = True,
        empty: Json = None,
        fields: dict[str, Field] | None = None,
        shape: str = "",
        required: bool = False,
        added: bool = False,
        internal: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.doc = doc
        self.unit = unit
        self.merge = merge
        self.volatile = volatile
        self.since = since
        self.reported = reported
        self.always = always
        self.nullable = nullable
        self.empty = empty
        self.fields = fields
        self.single = fields is not None and value.single
        self.is_part = self.single and not nullable
        self.is_table = value.keyed or (merge == TABLE and fields is not None)
        self.shape = shape
        self.required = required
        self.added = added
        self.internal = internal

    def absent(self) -> object:
        """Return what stands for the field where nothing is known; a fresh list or table."""
        if self.empty is None:
            return None
        if self.is_part and self.fields is not None:
            return {name: field.absent() for name, field in self.fields.items() if field.always}
        return self.empty.copy() if isinstance(self.empty, (dict, list)) else self.empty


def filled(table: Mapping[str, object], fields: Mapping[str, Field]) -> dict[str, object]:
    """Return a table in the order of its fields, with those that every report has.

    What is in no table of fields is left out.
    """
    full: dict[str, object] = {}
    for name, field in fields.items():
        if field.internal:
            continue
        value = table.get(name)
        if value is None:
            if field.always or name in table:
                full[name] = field.absent()
        elif field.is_part and field.fields is not None and isinstance(value, dict):
            full[name] = filled(value, field.fields)
        else:
            full[name] = value
    return full


def by_name(fields: Iterable[Field]) -> dict[str, Field]:
    """Return the fields by name, in their order."""
    return {field.name: field for field in fields}
