"""A machine's files, written one by one by a test: the fixture that authors have, too."""

from __future__ import annotations

from probe_core.testing import Tree

__all__ = ["Tree"]
