"""The kinds of devices, in the order in which reports list them."""

from __future__ import annotations

__all__ = ["ACCELERATORS", "KINDS", "KIND_ORDER"]

ACCELERATORS = ("gpu", "npu", "accelerator")
"""Kinds that compute for others; a display adapter of a server's BMC does not."""

KINDS = (*ACCELERATORS, "cpu", "display")
"""Every value that a device's `kind` may have."""

KIND_ORDER = {"gpu": 0, "accelerator": 1, "npu": 2, "cpu": 3, "display": 4}
"""Place of each kind in a report's list: what frameworks use first comes first."""
