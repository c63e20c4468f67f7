"""Check what a prober reports, field by field, against the table of fields.

A bad value becomes unknown, with the reason, and the device stays: one wrong number must not hide
a GPU, nor one wrong id beside a sound one. Only a device without a usable id or kind is refused.
"""

from __future__ import annotations

from probe_core.model.device import FIELDS
from probe_core.model.field import MAX_ITEMS, Ids, Items, Rejected, TableOf, show
from probe_core.model.ids import fits_kind
from probe_core.wording import INVALID, clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import FindingDoc, Json, Sighting
    from probe_core.model.field import Field, Value

    Key = tuple[object, ...]

__all__ = ["Repeats", "check_finding", "check_sighting"]

_REQUIRED = ("ids", "kind")
_UNKNOWN_LIMIT = 400
"""Characters of a reason that a prober gives: two lines of a terminal, as in its sentences."""

_SENTENCE_LIMIT = 600
"""Characters of a prober's finding: what `probe` prints in three lines at 200 columns."""

_FLAT = frozenset((str, int, float, bool, type(None)))
"""Types of plain data that hold no other."""


class Repeats:
    """Accepted tables of one prober's sightings: equal devices repeat most of their links.

    Only flat ones, of which a shallow copy shares nothing. The key has the types beside the values,
    as True, 1 and 1.0 are equal. It refers to the raw values, so it needs no bound of its own.
    """

    __slots__ = ("_tables",)

    def __init__(self) -> None:
        self._tables: dict[Key, dict[str, Json]] = {}

    def key(self, owner: object, value: object) -> Key | None:
        """Return the key of a flat table that `owner` checks; None for any other value."""
        if type(value) is not dict:
            return None
        items = value.values()
        types = [type(item) for item in items]  # faster than `map`, which cannot be specialised
        return (owner, *value, *items, *types) if _FLAT.issuperset(types) else None

    def get(self, key: Key | None) -> dict[str, Json] | None:
        """Return the checked form of an equal table; None where none was accepted before."""
        table = self._tables.get(key) if key is not None else None
        return None if table is None else table.copy()

    def keep(self, key: Key | None, table: Json) -> None:
        """Keep the checked form of a table that was accepted as a whole."""
        if key is None or not isinstance(table, dict):
            return
        # 0.0 and -0.0 are equal, of one type, and different JSON.
        if not any(type(item) is float and not item for item in key):
            self._tables[key] = table.copy()


def check_sighting(
    raw: object, repeats: Repeats | None = None
) -> tuple[Sighting | None, list[str]]:
    """Return (sighting with checked fields, sentences about rejected values).

    The sighting is None when it has no id, or no known kind, to be merged by. `repeats` keeps what
    was accepted of the same prober's earlier sightings.
    """
    if not isinstance(raw, dict) or INVALID in raw:
        text = str(raw[INVALID]) if isinstance(raw, dict) else type(raw).__name__
        return None, [f"a device must be a mapping, found {clean_text(text)}"]
    checker = _Checker(repeats if repeats is not None else Repeats())
    for name, value in _expanded(raw).items():
        if value is not None and name != "unknown":
            checker.take(name, value)
    checker.unknown.update(_reasons(raw.get("unknown")))
    checker.take_fitting_ids()
    missing = next((name for name in _REQUIRED if not checker.fields.get(name)), None)
    if missing is not None:
        checker.problems.append(f"a device has no usable {missing!r}, so it was left out")
        return None, checker.problems
    return checker.sighting(), checker.problems


def _expanded(raw: dict[str, object]) -> dict[str, object]:
    """Return the sighting with its one shorthand, `memory_bytes`, written out."""
    if "memory_bytes" not in raw:
        return raw
    memory = raw.get("memory")
    table = dict(memory) if isinstance(memory, dict) else {}
    table.setdefault("total", raw["memory_bytes"])
    return {name: value for name, value in raw.items() if name != "memory_bytes"} | {
        "memory": table
    }


class _Checker:
    """One sighting while it is checked."""

    __slots__ = ("_repeats", "fields", "problems", "unknown")

    def __init__(self, repeats: Repeats) -> None:
        self._repeats = repeats
        self.fields: dict[str, Json] = {}
        self.unknown: dict[str, str] = {}
        self.problems: list[str] = []

    def take(self, name: str, value: object) -> None:
        """Check one field and keep it, or note why not."""
        field = FIELDS.get(name)
        if field is None or not field.reported:
            self.problems.append(f"the field {clean_text(name, 60)!r} is not one of a device's")
        elif field.is_table:
            self._take_table(field, value)
        else:
            try:
                # Nearly all fields are single values, which pay for no second call.
                if field.fields is None:
                    self.fields[name] = field.value.check(value)
                else:
                    self.fields[name] = self._checked_tables(field.value, value)
            except Rejected as error:
                if isinstance(field.value, Ids):
                    self._take_usable_ids(field.value, value)
                else:
                    self._reject(name, str(error))

    def _take_usable_ids(self, kind: Ids, value: object) -> None:
        """Take the ids that can be used: a device is known as surely by one as by several.

        Not noted in `unknown`, which is for fields that have no value.
        """
        ids, problems = kind.usable(value)
        self.problems += [f"ids: {problem}" for problem in problems]
        if ids:
            self.fields["ids"] = [*ids]

    def _checked_tables(self, kind: Value, value: object) -> Json:
        """Check a list of tables: links and steps, of which few differ between equal devices."""
        if not (isinstance(kind, Items) and isinstance(value, list) and len(value) <= kind.limit):
            return kind.check(value)
        return [self._checked_item(kind.item, item) for item in value]

    def _checked_item(self, kind: Value, item: object) -> Json:
        key = self._repeats.key(kind, item)
        table: Json = self._repeats.get(key)
        if table is None:
            table = kind.check(item)
            self._repeats.keep(key, table)
        return table

    def _take_table(self, field: Field, value: object) -> None:
        """Take a table as it was accepted before, else name by name."""
        key = self._repeats.key(field, value)
        table = self._repeats.get(key)
        if table is not None:
            self.fields[field.name] = table
            return
        problems = len(self.problems)
        table = self._checked_table(field, value)
        if table:
            self.fields[field.name] = table
            if len(self.problems) == problems:
                self._repeats.keep(key, table)

    def _checked_table(self, field: Field, value: object) -> dict[str, Json]:
        """Check a table name by name; each is kept or rejected on its own."""
        table: dict[str, Json] = {}
        if not isinstance(value, dict) or INVALID in value:
            self._reject(field.name, f"expected a table, found {show(value)}")
            return table
        if len(value) > MAX_ITEMS:
            self.problems.append(f"{field.name}: only the first {MAX_ITEMS} names were kept")
        fields = field.fields or {}
        other = field.value.value if isinstance(field.value, TableOf) else None
        for key, item in list(value.items())[:MAX_ITEMS]:
            declared = fields.get(key)
            try:
                if declared is not None:
                    if item is not None:
                        table[key] = declared.value.check(item)
                elif other is None:
                    raise Rejected("is not a field of it")
                elif item is not None:
                    table[clean_text(key, 40)] = other.check(item)
            except Rejected as error:
                self._reject(f"{field.name}.{clean_text(key, 40)}", str(error))
        return table

    def take_fitting_ids(self) -> None:
        """Leave out ids that no device of this kind has: they would join it to another's."""
        ids, kind = self.fields.get("ids"), self.fields.get("kind")
        if isinstance(ids, list) and isinstance(kind, str):
            unfit = [i for i in ids if isinstance(i, str) and not fits_kind(i, kind)]
            self.problems += [f"ids: {identity} is no id of a {kind}" for identity in unfit]
            self.fields["ids"] = [identity for identity in ids if identity not in unfit]

    def _reject(self, path: str, reason: str) -> None:
        self.unknown[path] = reason
        self.problems.append(f"{path}: {reason}")

    def sighting(self) -> Sighting:
        """Return what was kept: the table of fields has made sure of every key and type."""
        return {**self.fields, "unknown": self.unknown}  # type: ignore[typeddict-item]


def _reasons(raw: object) -> dict[str, str]:
    """Return a prober's own reasons for what it does not know, with safe text."""
    if not isinstance(raw, dict):
        return {}
    return {
        clean_text(field, 80): clean_text(reason, _UNKNOWN_LIMIT)
        for field, reason in list(raw.items())[:MAX_ITEMS]
        if isinstance(reason, str)
    }


def check_finding(raw: object, prober: str | None = None) -> FindingDoc | None:
    """Return a prober's finding with safe text, or None when a sentence or its code is missing.

    `prober` is who reported it: a prober cannot speak in another's name.
    """
    if not isinstance(raw, dict) or INVALID in raw:
        return None
    sentences = [_text(raw, name, _SENTENCE_LIMIT) for name in ("what", "why", "fix")]
    code, severity = _text(raw, "code", 60), raw.get("severity")
    if code is None or None in sentences:
        return None
    return {
        "code": code,
        "severity": severity if severity in ("info", "warning", "error") else "warning",
        "what": sentences[0] or "",
        "why": sentences[1] or "",
        "fix": sentences[2] or "",
        "device": _text(raw, "device", 256),
        "prober": prober,
        "setting": None,
        "variable": _text(raw, "variable", 80),
        "step": _text(raw, "step", 80),
        "evidence": _text(raw, "evidence", _SENTENCE_LIMIT),
    }


def _text(raw: dict[str, object], name: str, limit: int) -> str | None:
    value = raw.get(name)
    return clean_text(value, limit) if isinstance(value, str) and value else None
