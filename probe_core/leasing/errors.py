"""The error of the lease folder itself; a busy device is a `SelectionError` of code ``busy``."""

from __future__ import annotations

__all__ = ["LeaseError"]


class LeaseError(OSError):
    """Leases cannot be kept: no folder for them, or what lies there cannot be trusted."""
