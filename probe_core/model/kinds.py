"""The kinds of devices, in the order in which reports list them."""

from __future__ import annotations

ACCELERATORS = ("gpu", "npu", "accelerator")
"""Kinds that compute for others; a display adapter of a server's BMC does not.

A coprocessor may, for all that is known: crypto cards file themselves under the same PCI class.
"""

KINDS = (*ACCELERATORS, "cpu", "coprocessor", "display")
"""Every value that a device's `kind` may have."""

KIND_ORDER = {"gpu": 0, "accelerator": 1, "npu": 2, "cpu": 3, "coprocessor": 4, "display": 5}
"""Place of each kind in a report's list: what frameworks use first comes first."""


# How a prober's run can end.

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
