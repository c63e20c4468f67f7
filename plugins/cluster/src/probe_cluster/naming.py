"""Names of nodes in sentences."""

from __future__ import annotations

from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMED = 5
"""Nodes that a sentence names: the document has all of them."""


def names(ids: Sequence[str]) -> str:
    """Return ``a, b and 3 more nodes``, for a sentence."""
    if len(ids) <= _NAMED:
        return ", ".join(ids)
    return f"{', '.join(ids[: _NAMED - 1])} and {counted(len(ids) - _NAMED + 1, 'more node')}"
