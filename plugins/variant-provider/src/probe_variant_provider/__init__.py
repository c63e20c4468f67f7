"""Wheel variants: which builds fit this node's GPUs, in the protocol of a draft.

A provider is an object with `get_all_configs()` and `get_supported_configs()`. Nothing is written
to standard output, because the caller reads its own answer there.
"""

from __future__ import annotations

from probe_variant_provider.provider import Provider

__all__ = ["PROTOCOL", "amd", "nvidia", "probe"]

PROTOCOL = "variantlib 0.2.2"
"""The protocol that is implemented: PEP 817 and 825 are drafts, and it changes with them."""

nvidia = Provider(("nvidia",))
amd = Provider(("amd",))
probe = Provider(("nvidia", "amd"))
