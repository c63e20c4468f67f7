"""The error of an export: one sentence for a person."""

from __future__ import annotations

__all__ = ["ExportError"]


class ExportError(Exception):
    """An export that cannot be made: whose fault it is, why, and the next step.

    `status` is the exit status of the command: 1 for a broken format, 2 for a wrong option.
    """

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status
