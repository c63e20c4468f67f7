"""Check what a prober reports, field by field, against the table of fields.

A bad value becomes unknown, with the reason, and the device stays: one wrong number must not hide
a GPU. Only a device without a usable id or kind is refused.
"""

from __future__ import annotations

from probe_core.model.field import TABLE
from probe_core.model.fields import FIELDS
from probe_core.model.ids import fits_kind
from probe_core.model.values import MAX_ITEMS, Rejected, TableOf, show
from probe_core.wording import INVALID, clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import FindingDoc, Json, Sighting
    from probe_core.model.field import Field
    from probe_core.model.values import Value

__all__ = ["check_finding", "check_sighting"]

_REQUIRED = ("ids", "kind")
_UNKNOWN_LIMIT = 400
"""Characters of a reason that a prober gives: two lines of a terminal, as in its sentences."""

_SENTENCE_LIMIT = 600
"""Characters of a prober's finding: what `probe` prints in three lines at 200 columns."""


def check_sighting(raw: object) -> tuple[Sighting | None, list[str]]:
    """Return (sighting with checked fields, sentences about rejected values).

    The sighting is None when it has no id, or no known kind, to be merged by.
    """
    if not isinstance(raw, dict) or INVALID in raw:
        text = str(raw[INVALID]) if isinstance(raw, dict) else type(raw).__name__
        return None, [f"a device must be a mapping, found {clean_text(text)}"]
    checker = _Checker()
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

    __slots__ = ("fields", "problems", "unknown")

    def __init__(self) -> None:
        self.fields: dict[str, Json] = {}
        self.unknown: dict[str, str] = {}
        self.problems: list[str] = []

    def take(self, name: str, value: object) -> None:
        """Check one field and keep it, or note why not."""
        field = FIELDS.get(name)
        if field is None or not field.reported:
            self.problems.append(f"the field {clean_text(name, 60)!r} is not one of a device's")
        elif isinstance(field.value, TableOf) or (field.fields and field.merge == TABLE):
            self._take_table(field, value)
        else:
            try:
                self.fields[name] = field.value.check(value)
            except Rejected as error:
                self._reject(name, str(error))

    def _take_table(self, field: Field, value: object) -> None:
        """Check a table name by name; each is kept or rejected on its own."""
        if not isinstance(value, dict) or INVALID in value:
            self._reject(field.name, f"expected a table, found {show(value)}")
            return
        if len(value) > MAX_ITEMS:
            self.problems.append(f"{field.name}: only the first {MAX_ITEMS} names were kept")
        table: dict[str, Json] = {}
        for key, item in list(value.items())[:MAX_ITEMS]:
            kind = _kind_of(field, key)
            try:
                if kind is None:
                    raise Rejected("is not a field of it")
                if item is not None:
                    table[clean_text(key, 40)] = kind.check(item)
            except Rejected as error:
                self._reject(f"{field.name}.{clean_text(key, 40)}", str(error))
        if table:
            self.fields[field.name] = table

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


def _kind_of(field: Field, name: str) -> Value | None:
    """Return what the value of `name` in a table must be; None for a name that it does not have."""
    if field.fields is not None and name in field.fields:
        return field.fields[name].value
    return field.value.value if isinstance(field.value, TableOf) else None


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
