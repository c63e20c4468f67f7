"""Collects one device's fields, so that every absent one carries its reason."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Facts:
    """A sighting under construction: `say` a field, or say why it is not known."""

    __slots__ = ("fields", "unknown")

    def __init__(self, **fields: Any) -> None:
        self.fields: dict[str, Any] = fields
        self.unknown: dict[str, str] = {}

    def say(self, field: str, value: object, why_not: str) -> None:
        """Record `value`; when it is None, record `why_not` under unknown instead.

        A dotted `field` ("memory.parts.limit") lies in a mapping of the first words.
        """
        if value is None:
            self.unknown[field] = why_not
            return
        place, *words = self.fields, *field.split(".")
        for word in words[:-1]:
            place = place.setdefault(word, {})
        place[words[-1]] = value

    def note(self, name: str, value: object) -> None:
        """Keep something for people under `extra`; None is left out."""
        if value is not None:
            self.fields.setdefault("extra", {})[name] = value

    def sighting(self) -> dict[str, Any]:
        """Return the plain mapping that the core merges."""
        return self.fields | ({"unknown": self.unknown} if self.unknown else {})
