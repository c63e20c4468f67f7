"""The causes that readiness does not judge, one file a topic."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Check

__all__ = ["TOPICS", "further_checks"]

TOPICS = ()


def further_checks() -> list[Check]:
    """Return the checks of all topics."""
    return []
