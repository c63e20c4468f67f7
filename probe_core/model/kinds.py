"""The kinds of devices, in the order in which reports list them."""

from __future__ import annotations

__all__ = ["ACCELERATORS", "KINDS", "KIND_ORDER"]

ACCELERATORS = ("gpu", "npu", "accelerator")
"""Kinds that compute for others; a display adapter of a server's BMC does not.

A coprocessor may, for all that is known: crypto cards file themselves under the same PCI class.
"""

KINDS = (*ACCELERATORS, "cpu", "coprocessor", "display")
"""Every value that a device's `kind` may have."""

KIND_ORDER = {"gpu": 0, "accelerator": 1, "npu": 2, "cpu": 3, "coprocessor": 4, "display": 5}
"""Place of each kind in a report's list: what frameworks use first comes first."""
