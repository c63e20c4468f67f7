"""Collects one device's fields, so that each missing one carries its reason."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Draft"]


class Draft:
    """A sighting under construction: put a field, or the reason why it is not known.

    `fields` and `unknown` may be read and changed directly, too.
    """

    __slots__ = ("fields", "unknown")

    def __init__(self, **fields: Any) -> None:
        self.fields: dict[str, Any] = fields
        self.unknown: dict[str, str] = {}

    def put(self, field: str, value: object, reason: str | None = None) -> None:
        """Record `value`; when it is None or empty, record `reason` under ``unknown`` instead.

        A dotted `field` ("memory.parts.limit") lies in a table of the words before its last. Zero
        and False are values. Without a `reason` a missing value is passed over.
        """
        if value is None or value in ("", [], {}):
            if reason:
                self.unknown[field] = reason
            return
        *tables, name = field.split(".")
        table = self.fields
        for key in tables:
            table = table.setdefault(key, {})
        table[name] = value

    def note(self, name: str, value: object) -> None:
        """Keep something for people under ``extra``; None is left out."""
        if value is not None:
            self.fields.setdefault("extra", {})[name] = value

    def sighting(self) -> dict[str, Any]:
        """Return the plain mapping that a prober yields."""
        return self.fields | ({"unknown": self.unknown} if self.unknown else {})
