"""The error of an export: one sentence for a person."""

from __future__ import annotations

__all__ = ["ExportError"]


class ExportError(Exception):
    """An export that cannot be made: whose fault it is, why, and the next step."""
