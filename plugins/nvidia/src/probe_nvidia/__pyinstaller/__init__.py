"""Tells PyInstaller where this package's hooks are: found by its entry point `hook-dirs`."""

from __future__ import annotations

import os

__all__ = ["get_hook_dirs"]


def get_hook_dirs() -> list[str]:
    """Return the folder of the hooks."""
    return [os.path.dirname(__file__)]
