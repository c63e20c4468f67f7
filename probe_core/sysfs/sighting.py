"""Collects one device's fields, so that each missing one carries its reason."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["AVOIDED", "Draft"]

AVOIDED = "a process that asked this device hung or died, so it was not asked again"
"""Why fields are missing of a device in the request's ``avoid``."""


class Draft:
    """A sighting under construction: put a field, or the reason why it is not known.

    `fields` and `unknown` may be read and changed directly, too.
    """

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

    def fact(
        self,
        step: str,
        status: str,
        evidence: str,
        code: str | None = None,
        opened: list[str] | None = None,
    ) -> None:
        """Add what was learnt of one step of readiness to ``step_facts``.

        `step` and `status` are words of a report's ``readiness``, `evidence` is what was read and
        where ("/sys/…/status: malfunction"), `code` the word for the cause of a break. Whether the
        nodes exist and may be opened is the core's to judge, from ``nodes``. `opened` are the nodes
        that were opened for this answer: of those it counts for more than access(2).
        """
        fact: dict[str, Any] = {"step": step, "status": status, "evidence": evidence, "code": code}
        if opened is not None:
            fact["opened"] = opened
        self.fields.setdefault("step_facts", []).append(fact)

    def left_alone(self) -> None:
        """Say that the device is in the request's ``avoid``: it was not asked for what is missing.

        A prober's process hung or died while it asked this device.
        """
        self.fact("responding", "broken", AVOIDED, "driver-hangs")
        self.unknown.setdefault("memory.total", AVOIDED)

    def sighting(self) -> dict[str, Any]:
        """Return the plain mapping that a prober yields."""
        return self.fields | ({"unknown": self.unknown} if self.unknown else {})
