"""How a prober's run can end."""

from __future__ import annotations

__all__ = ["FAILURES", "STATUSES"]

STATUSES: dict[str, str] = {
    "ok": "it reported devices",
    "not_applicable": "nothing of its own is here",
    "unavailable": "its hardware is here but cannot be queried",
    "skipped": "it was not run",
    "load_error": "its module or hook could not be loaded",
    "call_error": "it raised",
    "invalid": "it returned something other than devices",
    "timeout": "it did not end before its deadline",
    "crashed": "its process died",
    "protocol": "its process broke the protocol",
    "resource": "it used more than it may",
}
"""Status of an outcome to what it means."""

FAILURES = frozenset(
    {"load_error", "call_error", "invalid", "timeout", "crashed", "protocol", "resource"}
)
"""Statuses that are the prober's fault, or its process's."""
