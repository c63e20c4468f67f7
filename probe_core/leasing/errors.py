"""The error of the lease folder itself; a busy device is a `SelectionError` of code ``busy``."""

from __future__ import annotations

import os
import sys

__all__ = ["VARIABLE", "LeaseError", "require_locks"]

VARIABLE = "PROBE_LEASES"
"""Names the folder for leases."""


class LeaseError(OSError):
    """Leases cannot be kept: no folder for them, or what lies there cannot be trusted.

    The message is for people. For code: `path` is the folder or file that the failure is about,
    `variable` the environment variable that names another folder (each None where there is none).
    """

    def __init__(
        self, message: str, *, path: str | None = None, variable: str | None = VARIABLE
    ) -> None:
        super().__init__(message)
        self.path = path
        self.variable = variable


def require_locks() -> None:
    """Raise `LeaseError` on a system without POSIX file locks: on Windows.

    Called before the modules that need them are imported, for fcntl is missing there.
    """
    if os.name == "posix":
        return
    system = {"win32": "Windows"}.get(sys.platform, sys.platform)
    remedy = "Set CUDA_VISIBLE_DEVICES yourself, or use WSL 2."
    raise LeaseError(f"leases need Linux or macOS: this is {system}. {remedy}", variable=None)
