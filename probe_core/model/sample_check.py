"""Check what a sampler yields against the table of a sample's fields.

A figure that cannot be true is refused by name, with the reason in `unknown`, and never becomes 0.
"""

from __future__ import annotations

from probe_core.model.field import MAX_ITEMS, Items, Rejected, show
from probe_core.model.ids import normalise_id
from probe_core.model.sample_fields import SAMPLE_FIELDS, STATUSES
from probe_core.wording import INVALID, clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import Json, SampleDoc, SampleStatus
    from probe_core.model.field import Field


_REASON_LIMIT = 400
"""Characters of a sentence of a prober, as in its report."""

_FRAME = ("device", "status", "reason", "unknown")
NO_REASON = "its prober gives no reason"


def without_figures(
    device: str, status: SampleStatus, reason: str, prober: str | None
) -> SampleDoc:
    """Return the sample of a device that was not asked or did not answer."""
    sample: dict[str, object] = {
        "device": device,
        "prober": prober,
        "status": status,
        "reason": reason,
        **{name: field.absent() for name, field in SAMPLE_FIELDS.items()},
        "unknown": {},
    }
    return sample  # type: ignore[return-value]


def check_sample(raw: object, prober: str) -> tuple[SampleDoc | None, list[tuple[str, str]]]:
    """Return (sample with every key, (field, reason) of each refused value).

    The sample is None when it names no device.
    """
    if not isinstance(raw, dict) or INVALID in raw:
        text = str(raw[INVALID]) if isinstance(raw, dict) else type(raw).__name__
        return None, [("sample", f"expected a mapping, found {clean_text(text)}")]
    try:
        device = normalise_id(str(raw.get("device")))
    except ValueError as error:
        return None, [("device", clean_text(str(error)))]
    status, reason = raw.get("status", "ok"), raw.get("reason")
    if not _is_status(status):
        problem = f"expected one of {', '.join(STATUSES)}, found {show(status)}"
        return without_figures(
            device, "unavailable", f"its status is refused: {problem}", prober
        ), [("status", problem)]
    if status != "ok":
        text = clean_text(reason, _REASON_LIMIT) if isinstance(reason, str) else ""
        return without_figures(device, status, text or NO_REASON, prober), []
    return _Checker(raw).sample(device, prober)


class _Checker:
    """One sample while it is checked."""

    def __init__(self, raw: dict[str, object]) -> None:
        self._raw = raw
        self.unknown: dict[str, str] = {}
        self.problems: list[tuple[str, str]] = []

    def sample(self, device: str, prober: str) -> tuple[SampleDoc, list[tuple[str, str]]]:
        """Return the sample of a device that answered, and what was refused."""
        self.unknown = _reasons(self._raw.get("unknown"))
        for name in self._raw:
            if name not in SAMPLE_FIELDS and name not in _FRAME:
                self.problems.append((clean_text(name, 60), "it is not a field of a sample"))
        figures = {name: self._figure(name, field) for name, field in SAMPLE_FIELDS.items()}
        self._compare_memory(figures)
        # A reason beside a value would have a reader take the value for unknown.
        self.unknown = {
            path: reason for path, reason in self.unknown.items() if not _is_known(figures, path)
        }
        sample: dict[str, object] = {
            "device": device,
            "prober": prober,
            "status": "ok",
            "reason": None,
            **figures,
            "unknown": self.unknown,
        }
        return sample, self.problems  # type: ignore[return-value]

    def _figure(self, name: str, field: Field) -> object:
        value = self._raw.get(name)
        if value is None:
            if field.nullable:
                self.unknown.setdefault(name, "its prober does not report it")
            return field.absent()
        try:
            if field.fields is None:
                return field.value.check(value)
            if isinstance(field.value, Items):
                return self._records(name, field, value, field.value.limit)
            return self._table(name, field.fields, value)
        except Rejected as error:
            self._refuse(name, str(error))
            return field.absent()

    def _records(self, name: str, field: Field, value: object, limit: int) -> list[object]:
        if not isinstance(value, list):
            raise Rejected(f"expected a list, found {show(value)}")
        if len(value) > limit:
            self.problems.append((name, f"only the first {limit} entries were kept"))
        fields = field.fields or {}
        return [
            self._table(f"{name}.{number}", fields, item)
            for number, item in enumerate(value[:limit])
        ]

    def _table(self, path: str, fields: dict[str, Field], value: object) -> dict[str, Json]:
        """Check a table field by field: each is kept or refused on its own."""
        if not isinstance(value, dict) or INVALID in value:
            raise Rejected(f"expected a table, found {show(value)}")
        for key in list(value)[:MAX_ITEMS]:
            if key not in fields:
                field_path = f"{path}.{clean_text(key, 40)}"
                self.problems.append((field_path, "it is not a field of a sample"))
        table: dict[str, Json] = {}
        for key, field in fields.items():
            table[key] = None
            try:
                if value.get(key) is not None:
                    table[key] = field.value.check(value[key])
            except Rejected as error:
                self._refuse(f"{path}.{key}", str(error))
        return table

    def _compare_memory(self, figures: dict[str, object]) -> None:
        memory = figures["memory"]
        if isinstance(memory, dict):
            used, total = memory["used"], memory["total"]
            if used is not None and total is not None and used > total:
                memory["used"] = None
                self._refuse("memory.used", f"{used} of {total} bytes")

    def _refuse(self, path: str, reason: str) -> None:
        self.unknown[path] = f"refused: {reason}"
        self.problems.append((path, reason))


def _is_status(status: object) -> bool:
    # What cannot be hashed cannot be looked up, either.
    return isinstance(status, str) and status in STATUSES


def _is_known(figures: object, path: str) -> bool:
    """Return whether there is a value at a path such as ``links.0.sent``."""
    for name in path.split("."):
        if isinstance(figures, list) and name.isdecimal() and int(name) < len(figures):
            figures = figures[int(name)]
        elif isinstance(figures, dict):
            figures = figures.get(name)
        else:
            return False
    # Of an empty list, and of a table whose values have reasons of their own, a reason may speak.
    return figures is not None and not isinstance(figures, (list, dict))


def _reasons(raw: object) -> dict[str, str]:
    """Return a sampler's own reasons for what it does not know, with safe text."""
    if not isinstance(raw, dict):
        return {}
    return {
        clean_text(field, 80): clean_text(reason, _REASON_LIMIT)
        for field, reason in list(raw.items())[:MAX_ITEMS]
        if isinstance(reason, str)
    }
